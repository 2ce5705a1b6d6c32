/** Puts the category service together. */
import type { Deps } from "../resource/deps.ts";
import { createExpiry, withExpiry } from "../resource/expiry.ts";
import { createNameSearch, MARKS, withFoldedName } from "../resource/folded-names.ts";
import { createKeys } from "../resource/idempotency-keys.ts";
import { KEYS } from "../resource/key-transitions.ts";
import type { ServiceModule } from "../resource/module.ts";
import { withCaller } from "../resource/on-behalf.ts";
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
  return { implementations: createCategoryHandlers(context), workers: createCategoryWorkers(context) };
}
