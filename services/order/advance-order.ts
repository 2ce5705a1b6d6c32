/**
 * Advancing an order through its sagas until nothing is pending.
 *
 * The next step follows from what is stored, never from what a caller sent. So the request, a later request that finds the
 * order pending and the recovery worker may all advance it, concurrently too: Inventory gives every repeat of an order's
 * operation the same answer.
 */
import type { CallContext } from "@petstore/rpc/call";
import { onBehalfOf } from "../resource/on-behalf.ts";
import { releaseUnits } from "./cancel-order.ts";
import { type OrderContext, type OrderStep, unfinished } from "./context.ts";
import { commitUnits } from "./fulfil-order.ts";
import type { OrderDoc, PendingState } from "./model.ts";
import { reserveUnits } from "./place-order.ts";
import { isPending, timeOut } from "./rules.ts";

const steps: Record<PendingState, OrderStep> = {
  PLACED: reserveUnits,
  COMMITTING: commitUnits,
  ABORTING: releaseUnits,
  CANCELLING: releaseUnits,
};

/** Resolves to the order once nothing is pending. The loop ends, because every step leaves its state and none leads back. */
export async function advanceOrder(
  context: OrderContext,
  order: OrderDoc,
  callContext: CallContext,
): Promise<OrderDoc> {
  const call = onBehalfOf(order, callContext);
  let doc = order;
  while (isPending(doc.state)) {
    const next = await steps[doc.state](context, doc, call);
    if (!next) throw unfinished();
    doc = next;
  }
  await context.failpoint("order.settled");
  return doc;
}

/** For the recovery worker: aborts an order that has been PLACED for too long, and advances one that is decided. */
export async function recoverOrder(context: OrderContext, { _id }: OrderDoc, callContext: CallContext): Promise<void> {
  const doc = await context.orders.update(_id, timeOut(context.clock()), callContext);
  if (doc && doc.state !== "PLACED") await advanceOrder(context, doc, callContext);
}
