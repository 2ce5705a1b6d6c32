import { changesWorker, tombstonesWorker } from "../records/expiry.ts";
import type { Worker } from "../records/module.ts";
import type { InventoryContext } from "./context.ts";

export function createInventoryWorkers(context: InventoryContext, reservations: Worker): Worker[] {
  const { entries, publisher, highestOrder } = context;
  return [
    publisher.worker,
    reservations,
    highestOrder.worker,
    tombstonesWorker("inventory.tombstones", entries, context),
    changesWorker("inventory.changes", entries, context),
  ];
}
