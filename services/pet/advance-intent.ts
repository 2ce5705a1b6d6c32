/** Carrying out what was written down: a move, a new listing, a deletion. Whoever meets an intent drives it on. */

import { type Budget, onward } from "@petstore/rpc/call";
import { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { onBehalfOf } from "../resource/on-behalf.ts";
import { toPetStatus } from "../resource/record.ts";
import { type PetContext, ROUNDS, stockOf, unfinished } from "./create-pet.ts";
import type { Intent, IntentEnd, PetDoc } from "./model.ts";
import { applyDeletion, applyIntent, dropIntent } from "./rules.ts";

/**
 * Takes intent `op` of a pet to its end and says how it ended; undefined when a later one has already taken its place. The
 * answer is only ever read from the document, so that all who drove the intent answer alike.
 */
export async function driveIntent(
  context: PetContext,
  id: number,
  op: number,
  budget: Budget,
): Promise<IntentEnd | undefined> {
  for (let round = 0; round < ROUNDS; round++) {
    const doc = await context.pets.get(id, budget);
    if (doc?.intent?.op !== op) return doc?.last?.op === op ? doc.last : undefined;
    await context.point("pet.intent");
    const call = onBehalfOf(doc, budget);
    await (doc.intent.delete ? retire(context, id, op, call) : change(context, doc, doc.intent, call));
  }
  throw unfinished();
}

/** A pet that Inventory may know no more. */
export const isLeaving = ({ intent }: PetDoc): boolean => intent?.delete === true;

/** Takes the deletion that a read has met to its end. The pet is as it is then: gone, or there when it was refused. */
export async function endDeletion(context: PetContext, { _id, intent }: PetDoc, budget: Budget) {
  if (intent) await driveIntent(context, _id, intent.op, budget);
  return context.pets.get(_id, { deadline: budget.deadline, latest: true });
}

async function retire({ pets, inventory, clock, point }: PetContext, id: number, op: number, budget: Budget) {
  const { outcome } = await inventory.retire({ petId: BigInt(id), op: BigInt(op) }, onward(clock, budget));
  await point("pet.retired-inventory");
  if (outcome === Outcome.OPEN_ORDERS) await pets.update(id, dropIntent(op, "PET_HAS_OPEN_ORDERS"), budget);
  // Without an entry there is nothing to retire: someone else has carried the deletion this far.
  if (outcome === Outcome.OK || outcome === Outcome.NOT_FOUND) await pets.update(id, applyDeletion(op), budget);
}

async function change(context: PetContext, doc: PetDoc, { op, listing }: Intent, budget: Budget): Promise<void> {
  const { pets, gatekeeper, inventory, clock, point } = context;
  const id = doc._id;
  if (doc.joining !== undefined) {
    const verdict = await gatekeeper.pass(doc.joining, budget);
    if (verdict === "deleting") throw unfinished();
    await point("pet.passed-gate");
    if (verdict === "gone") return pets.update(id, dropIntent(op, "CATEGORY_NOT_FOUND"), budget);
  }
  if (listing === undefined) return pets.update(id, applyIntent(op, undefined), budget);
  const names = { petId: BigInt(id), op: BigInt(op), listing: toPetStatus(listing) };
  const { outcome, stock } = await inventory.setListing(names, onward(clock, budget));
  await point("pet.set-listing");
  if (outcome === Outcome.INSUFFICIENT_STOCK) return pets.update(id, dropIntent(op, "INSUFFICIENT_STOCK"), budget);
  if (outcome === Outcome.OK) return pets.update(id, applyIntent(op, stockOf(stock)), budget);
  // STALE or NOT_FOUND: the pet has moved on. The next look at the document says where to.
}
