/** Deleting a pet: its inventory entry is retired first, which is refused while open orders hold units of it. */
import { type CallContext, outgoing } from "@petstore/rpc/call";
import type { Decide } from "@petstore/store/port";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { documentAfter } from "../records/record.ts";
import type { PetContext } from "./context.ts";
import type { Intent, PetDoc } from "./model.ts";
import { applyDeletion, dropIntent, renumberIntent } from "./rules.ts";

/** Carries out a deletion and resolves to the stored pet. */
export async function carryOutDeletion(
  context: PetContext,
  { _id }: PetDoc,
  { op }: Intent,
  callContext: CallContext,
): Promise<PetDoc | undefined> {
  const { pets, inventory, clock, failpoint } = context;
  const { outcome, latestOp } = await inventory.retire(
    { petId: BigInt(_id), op: BigInt(op) },
    outgoing(clock, callContext),
  );
  await failpoint("pet.retired-inventory");
  const apply = (rule: Decide<PetDoc, void>) => pets.update(_id, documentAfter(rule), callContext);
  if (outcome === Outcome.OPEN_ORDERS) return apply(dropIntent(op, "PET_HAS_OPEN_ORDERS"));
  // NOT_FOUND: without an entry there is nothing to retire, and a lost entry must not keep the pet from being deleted.
  if (outcome === Outcome.OK || outcome === Outcome.NOT_FOUND) return apply(applyDeletion(op));
  return apply(renumberIntent(op, Number(latestOp)));
}
