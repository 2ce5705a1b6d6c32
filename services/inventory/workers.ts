import { changesWorker, tombstonesWorker } from "../resource/expiry.ts";
import type { Worker } from "../resource/module.ts";
import type { InventoryContext } from "./context.ts";
import { createReconciler } from "./reconciler.ts";

export function createInventoryWorkers(context: InventoryContext): Worker[] {
  const { entries, publisher } = context;
  return [
    publisher.worker,
    createReconciler(context),
    tombstonesWorker("inventory.tombstones", entries, context),
    changesWorker("inventory.changes", entries, context),
  ];
}
