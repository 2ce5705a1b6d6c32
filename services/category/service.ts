/** Puts the category service together. */
import type { Deps } from "../resource/deps.ts";
import { createExpiry, withExpiry } from "../resource/expiry.ts";
import { createKeys, KEYS } from "../resource/idempotency-keys.ts";
import type { ServiceModule } from "../resource/module.ts";
import { withCaller } from "../resource/on-behalf.ts";
import { type CategoryContext, type CategoryPeers, resolutionOf } from "./context.ts";
import { createCategoryHandlers } from "./handlers.ts";
import { CATEGORIES, isTombstone } from "./model.ts";
import { insertAborted } from "./rules.ts";
import { createCategoryWorkers } from "./workers.ts";

export async function createCategoryService(deps: Deps, peers: CategoryPeers): Promise<ServiceModule> {
  const { store } = deps;
  const expiry = createExpiry(deps.retention.tombstones, deps.clock);
  const categories = withCaller(withExpiry(await store.collection(CATEGORIES), isTombstone, expiry));
  const keys = createKeys(
    await store.collection(KEYS),
    {
      nextId: (callContext) => store.nextId("category", callContext),
      resolutionOf: async (id, callContext) => resolutionOf(await categories.get(id, callContext)),
      abandon: (id, callContext) => categories.update(id, insertAborted(id), callContext),
    },
    deps,
  );
  const context: CategoryContext = { ...deps, ...peers, categories, expiry, keys };
  return { implementations: createCategoryHandlers(context), workers: createCategoryWorkers(context) };
}
