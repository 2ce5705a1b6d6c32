/** Completing an order: it is stored as COMPLETE, then Inventory turns its reservation into a sale. */
import { type CallContext, outgoing } from "@petstore/rpc/call";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import type { OrderContext } from "./context.ts";
import { type PlacedOrder, unfinished } from "./rules.ts";

/** Must succeed before it is answered that the order is complete. Can be repeated. */
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
