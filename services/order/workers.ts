import { expiryWorker, removeTombstones } from "../resource/expiry.ts";
import type { Worker } from "../resource/module.ts";
import { recoveryWorker } from "../resource/recovery-worker.ts";
import { recoverOrder } from "./advance-order.ts";
import type { OrderContext } from "./context.ts";

export function createOrderWorkers(context: OrderContext): Worker[] {
  const { orders, keys, expiry } = context;
  return [
    recoveryWorker(
      {
        name: "order.recovery",
        everyMs: 2_000,
        list: (batch, budget) => orders.list({ ...batch, where: { pending: true } }, budget),
        advance: (doc, budget) => recoverOrder(context, doc, budget),
      },
      context,
    ),
    expiryWorker("order.keys", keys.removeExpired, context),
    expiryWorker("order.tombstones", (limit, budget) => removeTombstones(orders, expiry, limit, budget), context),
  ];
}
