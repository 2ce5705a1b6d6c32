/**
 * Updating or deleting a pet together with other services. What is to be done is an intent, which is stored in the pet before
 * it is carried out. The request, the next write to the pet and the recovery worker all advance it.
 */
import { type CallContext, outgoing } from "@petstore/rpc/call";
import type { Decide } from "@petstore/store/port";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { documentAfter, toPetStatus } from "../records/record.ts";
import { onBehalfOf } from "../records/sagas.ts";
import type { Intent, IntentEnd, PetDoc } from "./model.ts";
import {
  applyDeletion,
  applyIntent,
  dropIntent,
  MAX_STEPS,
  renumberIntent,
  toNumberedStatus,
  unfinished,
} from "./rules.ts";
import type { PetContext } from "./service.ts";

/**
 * Advances intent `op` of a pet to its end and resolves to its outcome; undefined when a later intent has ended since.
 * The outcome is read from the document, so that all callers that advance the intent get the same answer.
 */
export async function advanceIntent(
  context: PetContext,
  pet: PetDoc,
  op: number,
  callContext: CallContext,
): Promise<IntentEnd | undefined> {
  let doc: PetDoc | undefined = pet;
  let current = op;
  for (let step = 0; step < MAX_STEPS; step++) {
    // An intent that has not ended, but has another number by now.
    if (doc?.intent && (doc.last?.op ?? 0) < current) current = doc.intent.op;
    if (doc?.intent?.op !== current) return doc?.last?.op === current ? doc.last : undefined;
    await context.failpoint("pet.intent");
    const carryOut: typeof carryOutUpdate = doc.intent.delete ? carryOutDeletion : carryOutUpdate;
    doc = await carryOut(context, doc, doc.intent, onBehalfOf(doc, callContext));
  }
  throw unfinished();
}

/** True when Inventory may have retired the entry of the pet already. */
export const isDeletionUnderWay = ({ intent }: PetDoc): boolean => intent?.delete === true;

/** Advances a pet's deletion to its end and resolves to what is stored: deleted, or unchanged when it was refused. */
export async function finishDeletion(context: PetContext, pet: PetDoc, callContext: CallContext) {
  if (pet.intent) await advanceIntent(context, pet, pet.intent.op, callContext);
  return context.pets.get(pet._id, { ...callContext, latest: true });
}

/** Carries out an update, with Category for a move and Inventory for the listing. Resolves to the stored pet. */
async function carryOutUpdate(
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

/**
 * Carries out a deletion and resolves to the stored pet. Its inventory entry is retired first, which is refused while open
 * orders hold units of it.
 */
async function carryOutDeletion(
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
