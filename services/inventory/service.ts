/** Puts the inventory service together. */
import type { CallContext } from "@petstore/rpc/call";
import type { PeersOf } from "../create.ts";
import { listPending } from "../records/census.ts";
import { createExpiry, type Expiry, keepingOf, withExpiry } from "../records/expiry.ts";
import type { Deps, ServiceModule } from "../records/module.ts";
import { createInventoryHandlers } from "./handlers.ts";
import { type Entries, INVENTORY, isTombstone, type OperationOutcome } from "./model.ts";
import { createHighestOrder, createReservationsWorker, type HighestOrder, MARKS } from "./order-recovery.ts";
import { createPublisher, type Publisher } from "./outbox-publisher.ts";
import { commit, release } from "./rules.ts";

/** What the handlers and workers work with. */
export interface InventoryContext extends Deps, PeersOf<"inventory"> {
  readonly entries: Entries;
  readonly expiry: Expiry;
  readonly highestOrder: HighestOrder;
  readonly change: Publisher["change"];
  /** Turns an order's reservation into a sale. */
  commitOrder(id: number, order: number, units: number, callContext: CallContext): Promise<OperationOutcome>;
  /** Returns an order's reservation to the stock. */
  releaseOrder(id: number, order: number, callContext: CallContext): Promise<unknown>;
}

export async function createInventoryService(deps: Deps, peers: PeersOf<"inventory">): Promise<ServiceModule> {
  const expiry = createExpiry(deps.retention.tombstones, deps.clock);
  const entries = withExpiry(await deps.store.collection(INVENTORY), isTombstone, expiry);
  const highestOrder = createHighestOrder(await deps.store.collection(MARKS), deps);
  const publisher = createPublisher({ ...deps, ...peers, entries, highestOrder });
  const { change } = publisher;

  const commitOrder: InventoryContext["commitOrder"] = async (id, order, units, callContext) => {
    const result = await change(id, commit(order, units), "inventory.committed", callContext);
    const { outcome, lostReservation } = result;
    const what = outcome === "OK" ? "its units were taken from the stock" : "there are too few in stock, so restock it";
    if (lostReservation) deps.log.warn({ petId: id, order, units }, `a complete order had no reservation: ${what}`);
    return outcome;
  };
  const releaseOrder: InventoryContext["releaseOrder"] = (id, order, callContext) =>
    change(id, release(order), "inventory.released", callContext);

  const context = { ...deps, ...peers, entries, expiry, highestOrder, change, commitOrder, releaseOrder };
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
