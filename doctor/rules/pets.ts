/**
 * What must hold within a pet and a category, and between them, the pet's inventory entry, and the deletion guard that Pet has for
 * the category. Pure.
 */
import { type Decide, keep, put } from "@petstore/store/port";
import { type CategoryDoc, nameOf as nameOfCategory } from "../../services/category/model.ts";
import type { InventoryDoc } from "../../services/inventory/model.ts";
import { open, retire } from "../../services/inventory/rules.ts";
import { type DeletionGuardDoc, nameOf, type PetDoc } from "../../services/pet/model.ts";
import { byItself, type Finding, finding, type Mend } from "../findings.ts";
import { contradictions, derivedName } from "./records.ts";
import { restate } from "./stock.ts";

/** What follows from the rest of a pet. */
function ofPet(doc: PetDoc) {
  const { state, intent, categoryId } = doc;
  const isMember = state === "ACTIVE" || state === "CREATING";
  const visible = state === "ACTIVE" ? (true as const) : undefined;
  return {
    visible,
    pending: state === "CREATING" || intent ? (true as const) : undefined,
    member: isMember ? categoryId : undefined,
    joining: intent?.categoryId === categoryId ? undefined : intent?.categoryId,
    foldedName: derivedName(doc, visible, nameOf),
  };
}

export function wrongInPet(doc: PetDoc): Finding[] {
  const id = `pet/${doc._id}`;
  const { state, intent } = doc;
  const found = contradictions(id, doc, ofPet, ({ pets }, mended) => pets.update(doc._id, mended));
  if (state === "CREATING" || intent) {
    const what = state === "CREATING" ? "Its creation" : intent?.delete ? "Its deletion" : "A change of it";
    found.push(
      finding("stuck-pending", [id], `${what} is not finished.`, { mend: byItself, of: `${state} ${doc.op}` }),
    );
  }
  return found;
}

/** `entry` and `pet` have the same id. */
export function wrongInPair(pet: PetDoc | undefined, entry: InventoryDoc | undefined): Finding[] {
  if (pet?.state === "ACTIVE") return entry?.state === "OPEN" ? wrongStatus(pet, entry) : withoutEntry(pet, entry);
  if (entry?.state !== "OPEN" || pet?.state === "CREATING") return [];
  const detail = `The entry is open, and its pet is ${pet ? pet.state : "missing"}.`;
  const mend: Mend | undefined =
    pet && entry.openOrders === 0 ? ({ entries }) => entries.update(entry._id, retireAnyhow) : undefined;
  return [finding("entry-without-pet", [`inventory/${entry._id}`, `pet/${entry._id}`], detail, { mend })];
}

/** What the end of the pet should have done, whatever number it had. */
const retireAnyhow: Decide<InventoryDoc, unknown> = (doc, rev) => retire((doc?.lastOp.op ?? 0) + 1)(doc, rev);

function withoutEntry({ _id, listing, statusRev, intent }: PetDoc, entry: InventoryDoc | undefined): Finding[] {
  // Its deletion is about to be stored.
  if (entry?.state === "RETIRED" && intent?.delete) return [];
  const ids = [`pet/${_id}`, `inventory/${_id}`];
  if (entry) return [finding("pet-without-entry", ids, "The pet is there, and its entry is closed for good.")];
  return [
    finding("pet-without-entry", ids, "The pet has no inventory entry. A new one has no units.", {
      mend: async ({ entries }) => {
        await entries.update(_id, open(_id, listing, statusRev));
        await entries.update(_id, restate(statusRev));
      },
    }),
  ];
}

function wrongStatus(pet: PetDoc, entry: InventoryDoc): Finding[] {
  // The change that is under way brings its own.
  if (pet.intent) return [];
  const isAhead = pet.statusRev > entry.statusRev;
  if (!isAhead && pet.status === entry.status) return [];
  const detail = `The pet is ${pet.status} (${pet.statusRev}), its entry ${entry.status} (${entry.statusRev}).`;
  const isOnItsWay = entry.pending && entry.statusRev > pet.statusRev;
  return [
    finding("status-stale", [`pet/${pet._id}`, `inventory/${pet._id}`], detail, {
      mend: isOnItsWay ? byItself : ({ entries }) => entries.update(entry._id, restate(pet.statusRev)),
      of: entry.statusRev,
    }),
  ];
}

/** `category` is what is stored under the pet's category. */
export function wrongInMembership(pet: PetDoc, category: CategoryDoc | undefined): Finding[] {
  if (pet.state !== "ACTIVE" || (category && category.state !== "DELETED")) return [];
  const detail = `The pet belongs to a category that is ${category ? "deleted" : "missing"}.`;
  return [finding("category-missing", [`pet/${pet._id}`, `category/${pet.categoryId}`], detail)];
}

function ofCategory(doc: CategoryDoc) {
  const visible = doc.state === "DELETED" ? undefined : (true as const);
  return {
    visible,
    pending: doc.state === "DELETING" ? (true as const) : undefined,
    foldedName: derivedName(doc, visible, nameOfCategory),
  };
}

export function wrongInCategory(doc: CategoryDoc): Finding[] {
  const id = `category/${doc._id}`;
  const found = contradictions(id, doc, ofCategory, ({ categories }, mended) => categories.update(doc._id, mended));
  if (doc.state === "DELETING")
    found.push(finding("stuck-pending", [id], "Its deletion is not finished.", { mend: byItself, of: doc.op }));
  return found;
}

/** `category` has the same id. */
export function wrongInGuard(guard: DeletionGuardDoc, category: CategoryDoc | undefined): Finding[] {
  const { _id, closed, op } = guard;
  const ids = [`guard/${_id}`, `category/${_id}`];
  // Of the category's present deletion, or of one that it learns of: the next pet opens a guard that a crash has left closed.
  if (closed && category?.state === "ACTIVE" && category.op > op) {
    const detail = "The guard keeps pets out of a category that is not being deleted.";
    const mend: Finding["mend"] = ({ guards }) =>
      guards.update(_id, (now) => (now?.op === op ? put({ ...now, closed: false }, undefined) : keep(undefined)));
    return [finding("closed-guard", ids, detail, { mend, of: op })];
  }
  if (closed || (category && category.state !== "DELETED")) return [];
  const detail = "The guard lets pets into a category that is deleted.";
  const mend: Finding["mend"] = ({ guards }) =>
    guards.update(_id, (now) => (now ? put({ ...now, closed: true }, undefined) : keep(undefined)));
  return [finding("closed-guard", ids, detail, { mend })];
}
