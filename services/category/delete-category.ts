/**
 * Deleting a category that pets may be joining at this moment.
 *
 * Pet keeps a gate for each category. The deletion closes it, then asks who is inside; only when nobody is does the
 * category go. Otherwise it becomes active again first and the gate is opened after, by the one whose step back was stored:
 * in the other order a later deletion's gate could be opened.
 */
import type { Client } from "@connectrpc/connect";
import { type Budget, onward } from "@petstore/rpc/call";
import { Membership, type PetInternalService } from "#proto/petstore/internal/v1/pet_internal_service_pb.ts";
import type { Deps } from "../resource/deps.ts";
import { onBehalfOf, type Sagas } from "../resource/on-behalf.ts";
import type { CATEGORIES, CategoryDoc } from "./model.ts";
import { endDeletion } from "./rules.ts";

export interface Peers {
  readonly pets: Client<typeof PetInternalService>;
}
export type Categories = Sagas<CategoryDoc, (typeof CATEGORIES)["indexes"]>;

/** Takes the deletion that the category is in, if any, as far as it will go now. */
export async function driveDeletion(
  { clock, point, categories, pets }: Pick<Deps, "clock" | "point"> & Peers & { categories: Categories },
  id: number,
  budget: Budget,
): Promise<void> {
  const doc = await categories.get(id, budget);
  if (doc?.state !== "DELETING") return;
  const { op } = doc;
  const call = onBehalfOf(doc, budget);
  const names = { categoryId: BigInt(id), op: BigInt(op) };
  await point("category.deleting");
  const { membership } = await pets.closeCategory(names, onward(clock, call));
  await point("category.closed");
  if (membership === Membership.NONE) await categories.update(id, endDeletion(op, true), call);
  if (membership !== Membership.SOME) return;
  const steppedBack = await categories.update(id, endDeletion(op, false), call);
  await point("category.active-again");
  if (steppedBack) await pets.openCategory(names, onward(clock, call));
}
