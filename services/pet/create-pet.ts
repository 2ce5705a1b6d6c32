/** Creating a pet: store it as CREATING, check its category's guard, open its inventory entry, store it as ACTIVE. */
import { type CallContext, outgoing } from "@petstore/rpc/call";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { accepted, type Resolved, refused } from "../records/idempotency-keys.ts";
import { documentAfter, toPetStatus } from "../records/record.ts";
import { onBehalfOf } from "../records/sagas.ts";
import { NO_CATEGORY, type PetDoc, type PetParams, type PetRefusal } from "./model.ts";
import {
  abort,
  activate,
  insert,
  insertAborted,
  MAX_STEPS,
  refusalError,
  toNumberedStatus,
  unfinished,
} from "./rules.ts";
import type { PetContext } from "./service.ts";

/** Why pets can't join the category now, if they can't. Called before anything is written: a refusal leaves nothing. */
export async function checkCategory(
  { deletionGuard }: PetContext,
  categoryId: number,
  callContext: CallContext,
): Promise<PetRefusal | undefined> {
  const verdict = categoryId === NO_CATEGORY ? "deleted" : await deletionGuard.check(categoryId, callContext);
  if (verdict === "open") return undefined;
  return verdict === "deleted" ? "CATEGORY_NOT_FOUND" : "CONCURRENT_UPDATE";
}

/**
 * Writes the pet as CREATING and resolves to it, or to what is stored under its id by then. A refusal is stored under a key
 * (ABORTED), for the key binds it.
 */
export async function writePet(
  context: PetContext,
  { id, params, isKeyed }: { readonly id: number; readonly params: PetParams; readonly isKeyed: boolean },
  callContext: CallContext,
): Promise<PetDoc | undefined> {
  const refusal = isKeyed ? await checkCategory(context, params.categoryId, callContext) : undefined;
  // An attempt with the same key may still create the pet, so it can't be said that nothing happened.
  if (refusal === "CONCURRENT_UPDATE") throw unfinished();
  const write = refusal ? insertAborted(id) : insert(id, params);
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
    if (doc.state === "ABORTED") return refused(refusalError("CATEGORY_NOT_FOUND"));
    if (doc.state !== "CREATING") return accepted(doc);
    const call = onBehalfOf(doc, callContext);
    await failpoint("pet.creating");
    const verdict = await deletionGuard.check(doc.categoryId, call);
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
