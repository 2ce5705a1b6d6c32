/** Fulfilling an order: it was completed, so Inventory turns its reservation into a sale. */
import { outgoing } from "@petstore/rpc/call";
import { type OrderStep, operationOf } from "./context.ts";
import { commit } from "./rules.ts";

/** COMMITTING -> COMPLETE. */
export const commitUnits: OrderStep = async ({ clock, failpoint, orders, inventory }, doc, callContext) => {
  await failpoint("order.committing");
  await inventory.commit(operationOf(doc), outgoing(clock, callContext));
  await failpoint("order.committed-stock");
  return orders.update(doc._id, commit, callContext);
};
