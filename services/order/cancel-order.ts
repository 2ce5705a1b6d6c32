/** Cancelling an order: it is stored as CANCELLED, then Inventory takes its units back. */
import { type CallContext, outgoing } from "@petstore/rpc/call";
import type { OrderContext } from "./context.ts";
import type { PlacedOrder } from "./rules.ts";

/** Must succeed before it is answered that the order is gone. Can be repeated. */
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
