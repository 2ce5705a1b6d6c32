/**
 * Advancing an intent: an update or deletion of a pet in which other services take part. It is stored in the pet before
 * it is carried out. The request, the next write to the pet and the recovery worker all advance it.
 */
import type { CallContext } from "@petstore/rpc/call";
import { onBehalfOf } from "../records/on-behalf.ts";
import { MAX_STEPS, type PetContext, unfinished } from "./context.ts";
import { carryOutDeletion } from "./delete-pet.ts";
import type { IntentEnd, PetDoc } from "./model.ts";
import { carryOutUpdate } from "./update-pet.ts";

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
