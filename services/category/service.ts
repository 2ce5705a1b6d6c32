/** Puts the category service together. */
import { listPending } from "../records/census.ts";
import type { Deps } from "../records/deps.ts";
import { createExpiry, listTombstones, withExpiry } from "../records/expiry.ts";
import { createNameSearch, MARKS, withFoldedName } from "../records/folded-names.ts";
import { createKeys } from "../records/idempotency-keys.ts";
import { KEYS } from "../records/key-transitions.ts";
import type { ServiceModule } from "../records/module.ts";
import { withCaller } from "../records/on-behalf.ts";
import type { CategoryContext, CategoryPeers } from "./context.ts";
import { createCategoryHandlers } from "./handlers.ts";
import { CATEGORIES, isTombstone, nameOf } from "./model.ts";
import { createCategoryWorkers } from "./workers.ts";

export async function createCategoryService(deps: Deps, peers: CategoryPeers): Promise<ServiceModule> {
  const { store } = deps;
  const expiry = createExpiry(deps.retention.tombstones, deps.clock);
  const categories = withCaller(
    withExpiry(withFoldedName(await store.collection(CATEGORIES), nameOf), isTombstone, expiry),
  );
  const names = createNameSearch("category.names", categories, nameOf, await store.collection(MARKS), deps);
  const keys = createKeys(await store.collection(KEYS), "category", deps);
  const context: CategoryContext = { ...deps, ...peers, categories, expiry, keys, names };
  return {
    implementations: createCategoryHandlers(context),
    workers: createCategoryWorkers(context),
    countable: {
      pending: listPending(categories, ({ op }) => op),
      states: ["DELETING"],
      tombstones: listTombstones(categories, expiry),
      keys: keys.list,
    },
  };
}
