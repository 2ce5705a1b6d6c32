import { changesWorker, expiryWorker, removeTombstones } from "../resource/expiry.ts";
import type { Worker } from "../resource/module.ts";
import { recoveryWorker } from "../resource/recovery-worker.ts";
import type { CategoryContext } from "./context.ts";
import { advanceDeletion } from "./delete-category.ts";

export function createCategoryWorkers(context: CategoryContext): Worker[] {
  const { categories, keys, expiry } = context;
  return [
    recoveryWorker(
      {
        name: "category.recovery",
        everyMs: 2_000,
        list: (batch, callContext) => categories.list({ ...batch, where: { pending: true } }, callContext),
        advance: ({ _id }, callContext) => advanceDeletion(context, _id, callContext),
      },
      context,
    ),
    expiryWorker("category.keys", keys.removeExpired, context),
    expiryWorker(
      "category.tombstones",
      (limit, callContext) => removeTombstones(categories, expiry, limit, callContext),
      context,
    ),
    changesWorker("category.changes", categories, context),
  ];
}
