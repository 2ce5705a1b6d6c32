/**
 * Taking an order to where it can rest: Inventory reserves, commits or releases its units, and the order follows.
 *
 * What drives it on is what is stored, never what a caller sent. So the request, the next request that meets the order and
 * the sweeper may all do it, at the same time too: Inventory gives one order the same answer again.
 */
import type { Client } from "@connectrpc/connect";
import { type Budget, onward } from "@petstore/rpc/call";
import { type InventoryInternalService, Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import type { Deps } from "../resource/deps.ts";
import { DomainError } from "../resource/errors.ts";
import type { Fate } from "../resource/idempotency-keys.ts";
import { onBehalfOf } from "../resource/on-behalf.ts";
import { NO_PET, type OrderDoc, type OrderParams, type Orders, type Refusal } from "./model.ts";
import { abort, commit, release, reserve, timeOut } from "./rules.ts";

export interface Peers {
  readonly inventory: Client<typeof InventoryInternalService>;
}
export type OrderContext = Pick<Deps, "clock" | "point"> & Peers & { readonly orders: Orders };

const unfinished = () =>
  new DomainError(
    "UNAVAILABLE",
    "The order could not be finished now; what was asked may still take effect. Read it, or try again.",
  );

/** How an order stands towards the key that it was placed under. */
export function fateOf(doc: OrderDoc | undefined): Fate {
  if (!doc) return "missing";
  if (doc.state === "PLACED" || doc.state === "ABORTING") return "undecided";
  if (doc.state !== "ABORTED") return "accepted";
  return doc.refusal ? "refused" : "given up";
}

/** Takes an order to where it rests and returns it. It ends: every step leaves its state, and no arrow leads back. */
export async function drive(context: OrderContext, order: OrderDoc, budget: Budget): Promise<OrderDoc> {
  const call = onBehalfOf(order, budget);
  let doc = order;
  while (doc.todo) {
    const moved = await step(context, doc, call);
    if (!moved) throw unfinished();
    doc = moved;
  }
  await context.point("order.settled");
  return doc;
}

/** Gives up an order that nobody has decided in time, and takes one that is decided to its end. */
export async function finish(context: OrderContext, { _id }: OrderDoc, budget: Budget): Promise<void> {
  const doc = await context.orders.update(_id, timeOut(context.clock()), budget);
  if (doc && doc.state !== "PLACED") await drive(context, doc, budget);
}

/** Why the order would be refused now. Asked before anything is written, so that a refusal leaves nothing to clean up. */
export async function foreseeRefusal(
  { clock, inventory }: OrderContext,
  { petId, quantity = 1 }: OrderParams,
  budget: Budget,
): Promise<Refusal | undefined> {
  if (petId === undefined) return undefined;
  if (petId === NO_PET) return "PET_NOT_FOUND";
  const { outcome } = await inventory.checkReserve({ petId: BigInt(petId), quantity }, onward(clock, budget));
  return refusals[outcome];
}

function step(context: OrderContext, doc: OrderDoc, budget: Budget): Promise<OrderDoc | undefined> {
  if (doc.state === "PLACED") return askForUnits(context, doc, budget);
  return doc.state === "COMMITTING" ? bookUnits(context, doc, budget) : returnUnits(context, doc, budget);
}

/** Only orders for a pet have steps to take. */
const names = ({ _id, petId = 0 }: OrderDoc) => ({ orderId: BigInt(_id), petId: BigInt(petId) });

async function askForUnits({ clock, point, orders, inventory }: OrderContext, doc: OrderDoc, budget: Budget) {
  await point("order.placed");
  const { outcome } = await inventory.reserve({ ...names(doc), quantity: doc.quantity ?? 1 }, onward(clock, budget));
  await point("order.reserved-stock");
  return orders.update(doc._id, verdictOf(outcome), budget);
}

const refusals: Partial<Record<Outcome, Refusal>> = {
  [Outcome.NOT_FOUND]: "PET_NOT_FOUND",
  [Outcome.NOT_AVAILABLE]: "PET_NOT_AVAILABLE",
  [Outcome.INSUFFICIENT_STOCK]: "INSUFFICIENT_STOCK",
  [Outcome.TOO_MANY_OPEN_ORDERS]: "TOO_MANY_OPEN_ORDERS",
};
function verdictOf(outcome: Outcome): typeof reserve {
  if (outcome === Outcome.OK) return reserve;
  // FENCED: it was released before, so this reservation came too late.
  if (refusals[outcome] || outcome === Outcome.FENCED) return abort(refusals[outcome]);
  return undecided;
}
/** An answer that this version does not know is no evidence; the sweeper will give the order up. */
const undecided: typeof reserve = () => {
  throw unfinished();
};

async function bookUnits({ clock, point, orders, inventory }: OrderContext, doc: OrderDoc, budget: Budget) {
  await point("order.committing");
  await inventory.commit(names(doc), onward(clock, budget));
  await point("order.committed-stock");
  return orders.update(doc._id, commit, budget);
}

async function returnUnits({ clock, point, orders, inventory }: OrderContext, doc: OrderDoc, budget: Budget) {
  await point("order.releasing");
  await inventory.release(names(doc), onward(clock, budget));
  await point("order.released-stock");
  return orders.update(doc._id, release, budget);
}
