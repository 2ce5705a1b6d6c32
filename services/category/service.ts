/** Puts the category service together. */
import { listPending } from "../records/census.ts";
import type { Deps } from "../records/deps.ts";
import { createExpiry, withExpiry } from "../records/expiry.ts";
import { createNameSearch, MARKS, withFoldedName } from "../records/folded-names.ts";
import { createKeys } from "../records/idempotency-keys.ts";
import { keepingOf } from "../records/keeping.ts";
import { KEYS } from "../records/key-transitions.ts";
import type { ServiceModule } from "../records/module.ts";
import { withCaller } from "../records/on-behalf.ts";
import { recoveryWorker } from "../records/recovery-worker.ts";
import type { CategoryContext, CategoryPeers } from "./context.ts";
import { advanceDeletion } from "./delete-category.ts";
import { createCategoryHandlers } from "./handlers.ts";
import { CATEGORIES, type CategoryDoc, isTombstone, nameOf } from "./model.ts";

export async function createCategoryService(deps: Deps, peers: CategoryPeers): Promise<ServiceModule> {
  const { store } = deps;
  const expiry = createExpiry(deps.retention.tombstones, deps.clock);
  const categories = withCaller(
    withExpiry(withFoldedName(await store.collection(CATEGORIES), nameOf), isTombstone, expiry),
  );
  const names = createNameSearch("category.names", categories, nameOf, await store.collection(MARKS), deps);
  const keys = createKeys(await store.collection(KEYS), "category", deps);
  const context: CategoryContext = { ...deps, ...peers, categories, expiry, keys, names };
  const recovery = recoveryWorker<CategoryDoc>(
    {
      name: "category.recovery",
      everyMs: 2_000,
      list: (batch, callContext) => categories.list({ ...batch, where: { pending: true } }, callContext),
      advance: ({ _id }, callContext) => advanceDeletion(context, _id, callContext),
    },
    context,
  );
  const { workers, countable } = keepingOf("category", categories, context);
  return {
    implementations: createCategoryHandlers(context),
    workers: [recovery, ...workers],
    countable: { ...countable, pending: listPending(categories, ({ op }) => op), states: ["DELETING"] },
  };
}
