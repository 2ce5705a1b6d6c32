import { changesWorker, expiryWorker, tombstonesWorker } from "../records/expiry.ts";
import type { Worker } from "../records/module.ts";
import type { OrderContext } from "./context.ts";

export function createOrderWorkers(context: OrderContext): Worker[] {
  const { orders, keys } = context;
  return [
    expiryWorker("order.keys", keys.removeExpired, context),
    tombstonesWorker("order.tombstones", orders, context),
    changesWorker("order.changes", orders, context),
  ];
}
