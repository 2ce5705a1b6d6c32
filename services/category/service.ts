/** Puts the category service together. */
import type { PeersOf } from "../create.ts";
import { listPending } from "../records/census.ts";
import { createExpiry, type Expiry, keepingOf, withExpiry } from "../records/expiry.ts";
import { createNameSearch, MARKS, type NameSearch, withFoldedName } from "../records/folded-names.ts";
import { createKeys, type Keys } from "../records/idempotency-keys.ts";
import { KEYS } from "../records/key-transitions.ts";
import type { Deps, ServiceModule } from "../records/module.ts";
import { recoveryWorker, withCaller } from "../records/sagas.ts";
import { advanceDeletion } from "./delete-category.ts";
import { createCategoryHandlers } from "./handlers.ts";
import { CATEGORIES, type Categories, type CategoryDoc, isTombstone, nameOf } from "./model.ts";

/** What the handlers, saga and workers work with. */
export interface CategoryContext extends Deps, PeersOf<"category"> {
  readonly categories: Categories;
  readonly expiry: Expiry;
  readonly keys: Keys;
  readonly names: NameSearch<CategoryDoc>;
}

export async function createCategoryService(deps: Deps, peers: PeersOf<"category">): Promise<ServiceModule> {
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
      records: categories,
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
