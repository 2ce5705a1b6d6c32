import { changesWorker, tombstonesWorker } from "../records/expiry.ts";
import type { Worker } from "../records/module.ts";
import type { InventoryContext } from "./context.ts";
import { createReservationsWorker } from "./resolve-reservations.ts";

export function createInventoryWorkers(context: InventoryContext): Worker[] {
  const { entries, publisher, highestOrder } = context;
  return [
    publisher.worker,
    createReservationsWorker(context),
    highestOrder.worker,
    tombstonesWorker("inventory.tombstones", entries, context),
    changesWorker("inventory.changes", entries, context),
  ];
}
