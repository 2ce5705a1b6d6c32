/**
 * Deleting a category that pets may be joining at this moment.
 *
 * Pet keeps a deletion guard for each category. The deletion closes the guard, then asks whether the category has
 * members. Only if it has none is it deleted. Otherwise the category becomes ACTIVE first, and the caller whose write
 * made it so opens the guard afterwards. In the other order a pet could join while a concurrent attempt at the same
 * deletion still deletes the category.
 */
import { type CallContext, outgoing } from "@petstore/rpc/call";
import { Membership } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import { onBehalfOf } from "../records/sagas.ts";
import { endDeletion, renumberDeletion } from "./rules.ts";
import type { CategoryContext } from "./service.ts";

/** Advances the category's deletion, if one is under way, as far as it can go now. */
export async function advanceDeletion(context: CategoryContext, id: number, callContext: CallContext): Promise<void> {
  const { clock, failpoint, categories, pets } = context;
  const doc = await categories.get(id, callContext);
  if (doc?.state !== "DELETING") return;
  const { op } = doc;
  const call = onBehalfOf(doc, callContext);
  const deletion = { categoryId: BigInt(id), op: BigInt(op) };
  await failpoint("category.deleting");
  const { membership, latestOp } = await pets.closeCategory(deletion, outgoing(clock, call));
  await failpoint("category.closed");
  if (membership === Membership.NONE) await categories.update(id, endDeletion(op, "DELETED"), call);
  // As a rule this deletion has ended; else category and guard are of different days.
  if (membership === Membership.STALE && (await categories.update(id, renumberDeletion(op, Number(latestOp)), call)))
    return advanceDeletion(context, id, callContext);
  if (membership !== Membership.SOME) return;
  const steppedBack = await categories.update(id, endDeletion(op, "ACTIVE"), call);
  await failpoint("category.active-again");
  if (steppedBack) await pets.openCategory(deletion, outgoing(clock, call));
}
