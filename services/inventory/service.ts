/** Puts the inventory service together. */
import type { Deps } from "../resource/deps.ts";
import { createExpiry, withExpiry } from "../resource/expiry.ts";
import type { ServiceModule } from "../resource/module.ts";
import type { InventoryContext, InventoryPeers } from "./context.ts";
import { createInventoryHandlers } from "./handlers.ts";
import { INVENTORY, isTombstone } from "./model.ts";
import { createPublisher } from "./outbox-publisher.ts";
import { onceCleared, release } from "./rules.ts";
import { createInventoryWorkers } from "./workers.ts";

export async function createInventoryService(deps: Deps, peers: InventoryPeers): Promise<ServiceModule> {
  const expiry = createExpiry(deps.retention.tombstones, deps.clock);
  const entries = withExpiry(await deps.store.collection(INVENTORY), isTombstone, expiry);
  const publisher = createPublisher({ ...deps, ...peers, entries });

  const change: InventoryContext["change"] = async (id, decide, failpoint, callContext) => {
    const result = await entries.update(id, onceCleared(decide, publisher.publishedRev(id)), callContext);
    await deps.failpoint(failpoint);
    if (result.entry?.pending) publisher.notify(result.entry);
    return result;
  };
  const releaseOrder: InventoryContext["releaseOrder"] = (id, order, callContext) =>
    change(id, release(id, order), "inventory.released", callContext);

  const context = { ...deps, ...peers, entries, expiry, publisher, change, releaseOrder };
  return { implementations: createInventoryHandlers(context), workers: createInventoryWorkers(context) };
}
