/** Puts the inventory service together. */
import { listPending } from "../records/census.ts";
import type { Deps } from "../records/deps.ts";
import { createExpiry, withExpiry } from "../records/expiry.ts";
import { keepingOf } from "../records/keeping.ts";
import type { ServiceModule } from "../records/module.ts";
import type { InventoryContext, InventoryPeers } from "./context.ts";
import { createInventoryHandlers } from "./handlers.ts";
import { createHighestOrder, MARKS } from "./highest-order.ts";
import { INVENTORY, isTombstone } from "./model.ts";
import { createPublisher } from "./outbox-publisher.ts";
import { createReservationsWorker } from "./resolve-reservations.ts";
import { commit, onceCleared, release } from "./rules.ts";

export async function createInventoryService(deps: Deps, peers: InventoryPeers): Promise<ServiceModule> {
  const expiry = createExpiry(deps.retention.tombstones, deps.clock);
  const entries = withExpiry(await deps.store.collection(INVENTORY), isTombstone, expiry);
  const publisher = createPublisher({ ...deps, ...peers, entries });
  const highestOrder = createHighestOrder(await deps.store.collection(MARKS), deps);

  const change: InventoryContext["change"] = async (id, decide, failpoint, callContext) => {
    const result = await entries.update(id, onceCleared(decide, publisher.publishedRev(id)), callContext);
    await deps.failpoint(failpoint);
    if (result.entry) highestOrder.note(result.entry);
    if (result.entry?.pending) publisher.notify(result.entry, callContext.trace);
    return result;
  };
  const commitOrder: InventoryContext["commitOrder"] = async (id, order, units, callContext) => {
    const result = await change(id, commit(order, units), "inventory.committed", callContext);
    const { outcome, lostReservation } = result;
    const what = outcome === "OK" ? "its units were taken from the stock" : "there are too few in stock, so restock it";
    if (lostReservation) deps.log.warn({ petId: id, order, units }, `a complete order had no reservation: ${what}`);
    return outcome;
  };
  const releaseOrder: InventoryContext["releaseOrder"] = (id, order, callContext) =>
    change(id, release(order), "inventory.released", callContext);

  const context = { ...deps, ...peers, entries, expiry, publisher, highestOrder, change, commitOrder, releaseOrder };
  const reservations = createReservationsWorker(context);
  const { workers, countable } = keepingOf("inventory", entries, context);
  return {
    implementations: createInventoryHandlers(context),
    workers: [publisher.worker, reservations.worker, highestOrder.worker, ...workers],
    countable: {
      ...countable,
      pending: listPending(entries, ({ statusRev }) => statusRev),
      states: ["OPEN", "RETIRED"],
      isOutbox: true,
      unsettled: reservations.unsettled,
    },
  };
}
