import { changesWorker, expiryWorker, tombstonesWorker } from "../resource/expiry.ts";
import type { Worker } from "../resource/module.ts";
import { recoveryWorker } from "../resource/recovery-worker.ts";
import { recoverOrder } from "./advance-order.ts";
import type { OrderContext } from "./context.ts";

export function createOrderWorkers(context: OrderContext): Worker[] {
  const { orders, keys } = context;
  return [
    recoveryWorker(
      {
        name: "order.recovery",
        everyMs: 2_000,
        list: (batch, callContext) => orders.list({ ...batch, where: { pending: true } }, callContext),
        advance: (doc, callContext) => recoverOrder(context, doc, callContext),
      },
      context,
    ),
    expiryWorker("order.keys", keys.removeExpired, context),
    tombstonesWorker("order.tombstones", orders, context),
    changesWorker("order.changes", orders, context),
  ];
}
