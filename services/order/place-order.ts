/**
 * Placing an order: reserve its units at Inventory, then store it. A crash in between leaves a reservation of no order, which
 * Inventory asks about later: the order is then stored as ABORTED, so that it never comes to be.
 */
import { type CallContext, outgoing } from "@petstore/rpc/call";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import type { Order } from "#proto/petstore/order/v1/order_pb.ts";
import { type Attempt, abandoned, accepted, type Resolved, refused } from "../records/idempotency-keys.ts";
import { releaseUnits } from "./cancel-order.ts";
import { commitUnits } from "./complete-order.ts";
import type { OrderContext } from "./context.ts";
import { NO_PET, type OrderDoc, type OrderParams, type OrderRefusal } from "./model.ts";
import { asPlaced, insert, insertAborted, type PlacedOrder, refusalError, unfinished } from "./rules.ts";

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
