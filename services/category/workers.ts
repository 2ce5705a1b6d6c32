import { changesWorker, expiryWorker, tombstonesWorker } from "../records/expiry.ts";
import type { Worker } from "../records/module.ts";
import { recoveryWorker } from "../records/recovery-worker.ts";
import type { CategoryContext } from "./context.ts";
import { advanceDeletion } from "./delete-category.ts";

export function createCategoryWorkers(context: CategoryContext): Worker[] {
  const { categories, names, keys } = context;
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
    names.worker,
    expiryWorker("category.keys", keys.removeExpired, context),
    tombstonesWorker("category.tombstones", categories, context),
    changesWorker("category.changes", categories, context),
  ];
}
