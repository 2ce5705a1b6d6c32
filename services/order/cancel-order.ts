/**
 * Cancelling an order, or aborting one that was never accepted: Inventory takes the units back. The Release also fences
 * off a Reserve of the order that is still on its way; otherwise it could take the units after the refusal was answered.
 */
import { outgoing } from "@petstore/rpc/call";
import { type OrderStep, operationOf } from "./context.ts";
import { release } from "./rules.ts";

/** CANCELLING -> CANCELLED, ABORTING -> ABORTED. */
export const releaseUnits: OrderStep = async ({ clock, failpoint, orders, inventory }, doc, callContext) => {
  await failpoint("order.releasing");
  await inventory.release(operationOf(doc), outgoing(clock, callContext));
  await failpoint("order.released-stock");
  return orders.update(doc._id, release, callContext);
};
