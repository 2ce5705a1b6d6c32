/**
 * Placing an order: store it as PLACED, reserve its units at Inventory, then store it as RESERVED. An order placed as
 * complete becomes COMMITTING instead (`fulfil-order.ts`). An order that Inventory refuses becomes ABORTING
 * (`cancel-order.ts` returns the units).
 */
import { type CallContext, outgoing } from "@petstore/rpc/call";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { type OrderContext, type OrderStep, operationOf, unfinished } from "./context.ts";
import { NO_PET, type OrderDoc, type OrderParams, type OrderRefusal } from "./model.ts";
import { abort, insert, insertAborted, reserve } from "./rules.ts";

const refusals: Partial<Record<Outcome, OrderRefusal>> = {
  [Outcome.NOT_FOUND]: "PET_NOT_FOUND",
  [Outcome.NOT_AVAILABLE]: "PET_NOT_AVAILABLE",
  [Outcome.INSUFFICIENT_STOCK]: "INSUFFICIENT_STOCK",
  [Outcome.TOO_MANY_OPEN_ORDERS]: "TOO_MANY_OPEN_ORDERS",
};

/**
 * Why the order would be refused now, if it would be. Called before anything is written, so that a refusal leaves nothing
 * to clean up.
 */
export async function checkRefusal(
  { clock, inventory }: OrderContext,
  { petId, quantity = 1 }: OrderParams,
  callContext: CallContext,
): Promise<OrderRefusal | undefined> {
  if (petId === undefined) return undefined;
  if (petId === NO_PET) return "PET_NOT_FOUND";
  const { outcome } = await inventory.checkReserve({ petId: BigInt(petId), quantity }, outgoing(clock, callContext));
  return refusals[outcome];
}

/**
 * Writes the new order and resolves to it, or to the stored order if its id is written already. Under a key a refusal is
 * written as well (ABORTED), so that no late attempt places the order after it was refused.
 */
export async function writeOrder(
  context: OrderContext,
  { id, params, isKeyed }: { readonly id: number; readonly params: OrderParams; readonly isKeyed: boolean },
  callContext: CallContext,
): Promise<OrderDoc> {
  const { clock, orders } = context;
  const isFirst = isKeyed && !(await orders.get(id, callContext));
  const refusal = isFirst ? await checkRefusal(context, params, callContext) : undefined;
  return orders.update(id, refusal ? insertAborted(id, refusal) : insert(id, params, clock()), callContext);
}

/** PLACED -> RESERVED, COMMITTING or ABORTING. */
export const reserveUnits: OrderStep = async ({ clock, failpoint, orders, inventory }, doc, callContext) => {
  await failpoint("order.placed");
  const reservation = { ...operationOf(doc), quantity: doc.quantity ?? 1 };
  const { outcome } = await inventory.reserve(reservation, outgoing(clock, callContext));
  await failpoint("order.reserved-stock");
  return orders.update(doc._id, ruleFor(outcome), callContext);
};

function ruleFor(outcome: Outcome): typeof reserve {
  if (outcome === Outcome.OK) return reserve;
  // FENCED: the order was released before this reservation arrived.
  if (refusals[outcome] || outcome === Outcome.FENCED) return abort(refusals[outcome]);
  // This version doesn't know the outcome, so it decides nothing; the recovery worker will abort the order.
  throw unfinished();
}
