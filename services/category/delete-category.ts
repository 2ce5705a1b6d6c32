/**
 * Deleting a category that pets may be joining at this moment.
 *
 * Pet keeps a deletion guard for each category. The deletion closes it, then asks for members; only when there are none is
 * the category deleted. Otherwise the category becomes ACTIVE first and the guard is opened afterwards, by the one whose
 * step back was stored: in the other order the guard of a later deletion could be opened.
 */
import { type CallContext, outgoing } from "@petstore/rpc/call";
import { Membership } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import { onBehalfOf } from "../resource/on-behalf.ts";
import type { CategoryContext } from "./context.ts";
import { endDeletion } from "./rules.ts";

/** Takes the deletion that the category is in, if any, as far as it will go now. */
export async function advanceDeletion(
  { clock, failpoint, categories, pets }: CategoryContext,
  id: number,
  callContext: CallContext,
): Promise<void> {
  const doc = await categories.get(id, callContext);
  if (doc?.state !== "DELETING") return;
  const { op } = doc;
  const call = onBehalfOf(doc, callContext);
  const deletion = { categoryId: BigInt(id), op: BigInt(op) };
  await failpoint("category.deleting");
  const { membership } = await pets.closeCategory(deletion, outgoing(clock, call));
  await failpoint("category.closed");
  if (membership === Membership.NONE) await categories.update(id, endDeletion(op, "DELETED"), call);
  if (membership !== Membership.SOME) return;
  const steppedBack = await categories.update(id, endDeletion(op, "ACTIVE"), call);
  await failpoint("category.active-again");
  if (steppedBack) await pets.openCategory(deletion, outgoing(clock, call));
}
