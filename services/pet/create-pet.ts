/**
 * Creating a pet: store it as CREATING, check the deletion guard of its category, open its inventory entry, store it as
 * ACTIVE.
 */
import { type CallContext, outgoing } from "@petstore/rpc/call";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { abandoned, accepted, type Resolved, refused } from "../resource/idempotency-keys.ts";
import { onBehalfOf } from "../resource/on-behalf.ts";
import { documentAfter, toPetStatus } from "../resource/record.ts";
import { MAX_STEPS, type PetContext, toNumberedStatus, unfinished } from "./context.ts";
import { NO_CATEGORY, type PetDoc, type PetParams, type PetRefusal } from "./model.ts";
import { abort, activate, insert, insertAborted, refusalError } from "./rules.ts";

/**
 * Why pets can't join the category now, if they can't. Called before anything is written, so that a refusal leaves
 * nothing to clean up.
 */
export async function checkCategory(
  { deletionGuard }: PetContext,
  categoryId: number,
  callContext: CallContext,
): Promise<PetRefusal | undefined> {
  const verdict =
    categoryId === NO_CATEGORY ? "deleted" : await deletionGuard.checkBeforeClaim(categoryId, callContext);
  if (verdict === "open") return undefined;
  return verdict === "deleted" ? "CATEGORY_NOT_FOUND" : "CONCURRENT_UPDATE";
}

/**
 * Writes the pet as CREATING and resolves to it, or to the stored pet if its id is written already. Under a key a refusal
 * is written as well (ABORTED), so that no late attempt creates the pet after it was refused.
 */
export async function writePet(
  context: PetContext,
  { id, params, isKeyed }: { readonly id: number; readonly params: PetParams; readonly isKeyed: boolean },
  callContext: CallContext,
): Promise<PetDoc | undefined> {
  const written = isKeyed ? await context.pets.get(id, callContext) : undefined;
  if (written) return written;
  const refusal = isKeyed ? await checkCategory(context, params.categoryId, callContext) : undefined;
  const write = refusal ? insertAborted(id, refusal) : insert(id, params);
  return context.pets.update(id, documentAfter(write), callContext);
}

/** CREATING -> ACTIVE or ABORTED. The next step follows from what is stored, never from what a caller sent. */
export async function advanceCreation(
  context: PetContext,
  pet: PetDoc | undefined,
  callContext: CallContext,
): Promise<Resolved<PetDoc>> {
  const { clock, failpoint, pets, deletionGuard, inventory } = context;
  let doc = pet;
  for (let step = 0; step < MAX_STEPS; step++) {
    if (!doc) throw unfinished();
    const id = doc._id;
    if (doc.state === "ABORTED") return doc.refusal ? refused(refusalError(doc.refusal)) : abandoned;
    if (doc.state !== "CREATING") return accepted(doc);
    const call = onBehalfOf(doc, callContext);
    await failpoint("pet.creating");
    const verdict = await deletionGuard.checkAfterClaim(doc.categoryId, call);
    // Not a refusal: if the category becomes ACTIVE again, the pet can still be created.
    if (verdict === "deleting") throw unfinished();
    await failpoint("pet.guard-checked");
    if (verdict === "deleted") {
      doc = await pets.update(id, documentAfter(abort), call);
      continue;
    }
    const entry = { petId: BigInt(id), listing: toPetStatus(doc.listing) };
    const { outcome, stock } = await inventory.open(entry, outgoing(clock, call));
    await failpoint("pet.opened-inventory");
    const opened = toNumberedStatus(stock);
    const isOpened = outcome === Outcome.OK && opened;
    doc = isOpened ? await pets.update(id, documentAfter(activate(opened)), call) : await pets.get(id, call);
  }
  throw unfinished();
}
