/**
 * The saga of an order. Placing it: reserve its units at Inventory, then store it. A crash in between leaves a reservation of
 * no order, which Inventory asks about later: the order is then stored as ABORTED, so that it never comes to be. Completing or
 * cancelling it: store it as COMPLETE or CANCELLED, then Inventory turns its reservation into a sale, or takes its units back.
 */
import { background, type CallContext, outgoing } from "@petstore/rpc/call";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import type { Order } from "#proto/petstore/order/v1/order_pb.ts";
import { type Attempt, abandoned, accepted, type Resolved, refused } from "../records/idempotency-keys.ts";
import { NO_PET, type OrderDoc, type OrderParams, type OrderRefusal } from "./model.ts";
import { asPlaced, insert, insertAborted, type PlacedOrder, refusalError, unfinished } from "./rules.ts";
import type { OrderContext } from "./service.ts";

const refusals: Partial<Record<Outcome, OrderRefusal>> = {
  [Outcome.NOT_FOUND]: "PET_NOT_FOUND",
  [Outcome.NOT_AVAILABLE]: "PET_NOT_AVAILABLE",
  [Outcome.INSUFFICIENT_STOCK]: "INSUFFICIENT_STOCK",
  [Outcome.TOO_MANY_OPEN_ORDERS]: "TOO_MANY_OPEN_ORDERS",
};

/** How Inventory answered: the units are held, or why no order can be made of this id. */
type Reserved = "held" | { readonly refusal: OrderRefusal } | { readonly fencedUpTo: number };

/**
 * One attempt to place an order under an id. `stored` is what is stored there already. Whoever stores first under an id
 * wins, and everybody answers by what is stored then: 201 unless it is ABORTED. A refusal without a key writes nothing, ever.
 */
export async function placeOrder(
  context: OrderContext,
  attempt: Attempt,
  { sent, params, stored }: { readonly sent: Order | undefined; params: OrderParams; stored: OrderDoc | undefined },
  callContext: CallContext,
): Promise<Resolved<number>> {
  const { orders, failpoint } = context;
  const order = { id: attempt.id, ...asPlaced(params) };
  let doc = stored;
  let above: number | undefined;
  if (!doc) {
    const reserved = await reserveUnits(context, order, attempt.tag, callContext);
    await failpoint("order.reserved-stock");
    if (reserved === "held")
      doc = await orders.update(attempt.id, insert(attempt.id, params, attempt.tag), callContext);
    else {
      const refusal = "refusal" in reserved ? reserved.refusal : undefined;
      above = "fencedUpTo" in reserved ? reserved.fencedUpTo : undefined;
      if (!attempt.isKeyed) return refusal ? refused(refusalError(refusal, sent)) : abandoned(above);
      doc = await orders.update(attempt.id, insertAborted(attempt.id, refusal), callContext);
    }
    await failpoint("order.stored");
  }
  if (doc.state === "ABORTED") {
    if (doc.refusal) return refused(refusalError(doc.refusal, sent));
    // The units must be back before a fresh id asks for them: else the order is refused because of itself.
    await releaseUnits(context, order, callContext);
    return abandoned(above);
  }
  if (order.complete) await commitUnits(context, order, callContext);
  return accepted(attempt.id);
}

async function reserveUnits(
  { clock, inventory }: OrderContext,
  { id, petId, quantity = 1 }: PlacedOrder,
  tag: string,
  callContext: CallContext,
): Promise<Reserved> {
  if (petId === undefined) return "held";
  if (petId === NO_PET) return { refusal: "PET_NOT_FOUND" };
  const reservation = { petId: BigInt(petId), orderId: BigInt(id), quantity, tag };
  const { outcome, highestOrderId } = await inventory.reserve(reservation, outgoing(clock, callContext));
  if (outcome === Outcome.OK) return "held";
  if (outcome === Outcome.FENCED) return { fencedUpTo: Number(highestOrderId) };
  const refusal = refusals[outcome];
  // This version doesn't know the outcome, so it decides nothing.
  if (!refusal) throw unfinished();
  return { refusal };
}

/** Turns the reservation into a sale. Must succeed before it is answered that the order is complete. Can be repeated. */
export async function commitUnits(
  { clock, failpoint, inventory }: OrderContext,
  { id, petId, quantity = 1 }: PlacedOrder,
  callContext: CallContext,
): Promise<void> {
  if (petId === undefined) return;
  const sale = { petId: BigInt(petId), orderId: BigInt(id), quantity };
  await failpoint("order.complete");
  const { outcome } = await inventory.commit(sale, outgoing(clock, callContext));
  await failpoint("order.committed-stock");
  if (outcome !== Outcome.OK)
    throw unfinished(
      `The inventory of pet ${petId} does not know this order and has too few units for it: restock it.`,
    );
}

/** Gives the units back. Must succeed before it is answered that the order is gone. Can be repeated. */
export async function releaseUnits(
  { clock, failpoint, inventory }: OrderContext,
  { id, petId }: PlacedOrder,
  callContext: CallContext,
): Promise<void> {
  if (petId === undefined) return;
  await failpoint("order.ended");
  await inventory.release({ petId: BigInt(petId), orderId: BigInt(id) }, outgoing(clock, callContext));
  await failpoint("order.released-stock");
}

/** An order without a pet can do without Inventory, so it waits no longer to know its highest order. In milliseconds. */
const KNOWN_ORDERS_TIMEOUT_MS = 1_000;

/**
 * Which orders Inventory knows, asked before a process gives its first id: the counter of ids may be older, as after Order was
 * restored from an older copy, and whoever remembers an id must not see another order under it. Resolves to the highest of
 * them. While Inventory does not answer: to undefined, and it is asked again.
 */
export function createKnownOrders(context: Pick<OrderContext, "clock" | "random" | "inventory">) {
  const { clock, inventory } = context;
  let highest: number | undefined;
  return async (): Promise<number | undefined> => {
    if (highest !== undefined) return highest;
    const call = { ...background(context, "known-orders"), deadline: clock() + KNOWN_ORDERS_TIMEOUT_MS };
    try {
      highest = Number((await inventory.getHighestOrder({}, outgoing(clock, call))).orderId);
    } catch {
      // Tags keep the units of two orders of one id apart, and an entry that knows the id fences it.
    }
    return highest;
  };
}
