/** What must hold within a category, and between it and the deletion guard that Pet has for it. Pure. */
import { keep, put } from "@petstore/store/port";
import { type CategoryDoc, nameOf } from "../../services/category/model.ts";
import type { DeletionGuardDoc } from "../../services/pet/model.ts";
import { byItself, type Finding, finding } from "../findings.ts";
import { contradictions, derivedName } from "./contradictions.ts";

function derived(doc: CategoryDoc) {
  const visible = doc.state === "DELETED" ? undefined : (true as const);
  return {
    visible,
    pending: doc.state === "DELETING" ? (true as const) : undefined,
    foldedName: derivedName(doc, visible, nameOf),
  };
}

export function wrongInCategory(doc: CategoryDoc): Finding[] {
  const id = `category/${doc._id}`;
  const found = contradictions(id, doc, derived, ({ categories }, mended) => categories.update(doc._id, mended));
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
