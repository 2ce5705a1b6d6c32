import { changesWorker, expiryWorker, removeTombstones } from "../resource/expiry.ts";
import type { Worker } from "../resource/module.ts";
import type { InventoryContext } from "./context.ts";
import { createReconciler } from "./reconciler.ts";

export function createInventoryWorkers(context: InventoryContext): Worker[] {
  const { entries, expiry, publisher } = context;
  return [
    publisher.worker,
    createReconciler(context),
    expiryWorker(
      "inventory.tombstones",
      (limit, callContext) => removeTombstones(entries, expiry, limit, callContext),
      context,
    ),
    changesWorker("inventory.changes", entries, context),
  ];
}
