/** Updating a pet together with other services: Category for a move, Inventory for the listing. */
import { type CallContext, outgoing } from "@petstore/rpc/call";
import type { Decide } from "@petstore/store/port";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { documentAfter, toPetStatus } from "../records/record.ts";
import { type PetContext, toNumberedStatus, unfinished } from "./context.ts";
import type { Intent, PetDoc } from "./model.ts";
import { applyIntent, dropIntent, renumberIntent } from "./rules.ts";

/** Carries out an update and resolves to the stored pet. */
export async function carryOutUpdate(
  context: PetContext,
  doc: PetDoc,
  { op, listing }: Intent,
  callContext: CallContext,
): Promise<PetDoc | undefined> {
  const { pets, deletionGuard, inventory, clock, failpoint } = context;
  const id = doc._id;
  const apply = (rule: Decide<PetDoc, void>) => pets.update(id, documentAfter(rule), callContext);
  if (doc.joining !== undefined) {
    const verdict = await deletionGuard.check(doc.joining, callContext);
    if (verdict === "deleting") throw unfinished();
    await failpoint("pet.guard-checked");
    if (verdict === "deleted") return apply(dropIntent(op, "CATEGORY_NOT_FOUND"));
  }
  if (listing === undefined) return apply(applyIntent(op, undefined));
  const entry = { petId: BigInt(id), listing: toPetStatus(listing), knownStatusRev: BigInt(doc.statusRev) };
  const operation = { ...entry, op: BigInt(op) };
  const { outcome, stock, latestOp } = await inventory.setListing(operation, outgoing(clock, callContext));
  await failpoint("pet.set-listing");
  if (outcome === Outcome.INSUFFICIENT_STOCK) return apply(dropIntent(op, "INSUFFICIENT_STOCK"));
  if (outcome === Outcome.OK) return apply(applyIntent(op, toNumberedStatus(stock)));
  // As a rule this intent has ended already, and the pet shows how. Else pet and entry are of different days.
  const now = await apply(renumberIntent(op, Number(latestOp)));
  if (now?.intent?.op === op && outcome === Outcome.NOT_FOUND)
    await inventory.open(entry, outgoing(clock, callContext));
  return now;
}
