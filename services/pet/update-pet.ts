/** Updating a pet where other services have a say: Category in a move, Inventory in the listing. */
import { type CallContext, outgoing } from "@petstore/rpc/call";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { toPetStatus } from "../resource/record.ts";
import { type PetContext, toNumberedStatus, unfinished } from "./context.ts";
import type { Intent, PetDoc } from "./model.ts";
import { applyIntent, dropIntent } from "./rules.ts";

export async function carryOutUpdate(
  context: PetContext,
  doc: PetDoc,
  { op, listing }: Intent,
  callContext: CallContext,
) {
  const { pets, deletionGuard, inventory, clock, failpoint } = context;
  const id = doc._id;
  if (doc.joining !== undefined) {
    const verdict = await deletionGuard.checkAfterClaim(doc.joining, callContext);
    if (verdict === "deleting") throw unfinished();
    await failpoint("pet.guard-checked");
    if (verdict === "deleted") return pets.update(id, dropIntent(op, "CATEGORY_NOT_FOUND"), callContext);
  }
  if (listing === undefined) return pets.update(id, applyIntent(op, undefined), callContext);
  const operation = { petId: BigInt(id), op: BigInt(op), listing: toPetStatus(listing) };
  const { outcome, stock } = await inventory.setListing(operation, outgoing(clock, callContext));
  await failpoint("pet.set-listing");
  if (outcome === Outcome.INSUFFICIENT_STOCK) return pets.update(id, dropIntent(op, "INSUFFICIENT_STOCK"), callContext);
  if (outcome === Outcome.OK) return pets.update(id, applyIntent(op, toNumberedStatus(stock)), callContext);
  // STALE or NOT_FOUND: this intent has ended already. The next read of the pet shows how.
}
