/** State transitions of a category. Each rule is a pure function from the stored document to a decision. */

import { type Decision, keep, put } from "@petstore/store/port";
import { checkPreconditions, DomainError, type Preconditions } from "../records/errors.ts";
import { FORMAT, succeed } from "../records/record.ts";
import { type CategoryDoc, type CategoryParams, categoryOf, input } from "./model.ts";

type Rule<R> = (doc: CategoryDoc | undefined) => Decision<CategoryDoc, R>;

/** Whether callers may see the category. */
const exists = (doc: CategoryDoc | undefined): doc is CategoryDoc =>
  doc?.state === "ACTIVE" || doc?.state === "DELETING";

export const categoryNotFound = (id: bigint | number) =>
  new DomainError("CATEGORY_NOT_FOUND", `No category has the id ${id}.`);

/** Writes a new category, unless its id is already written. */
export const insert =
  (id: number, params: CategoryParams): Rule<CategoryDoc> =>
  (doc) => {
    if (doc) return keep(doc);
    const fresh = { ...params, _id: id, version: 1, state: "ACTIVE", visible: true, op: 0, format: FORMAT } as const;
    return put(fresh, { ...fresh, rev: 1 });
  };

/** Applies `change`: an absent member stays, an undefined one is removed. "deleting": a deletion is undecided. */
export const update =
  (id: bigint, change: Partial<CategoryParams>, preconditions: Preconditions): Rule<CategoryDoc | "deleting"> =>
  (doc) => {
    if (!exists(doc)) throw categoryNotFound(id);
    if (doc.state === "DELETING") return keep("deleting");
    checkPreconditions(preconditions, doc.version);
    const next = succeed(doc, change, categoryOf);
    return next.version === doc.version ? keep(doc) : put(next, next);
  };

/** Begins a deletion, or joins the one under way. The result is its number and whether it was joined. */
export const beginDeletion =
  (id: bigint, preconditions: Preconditions): Rule<{ readonly op: number; readonly joined: boolean }> =>
  (doc) => {
    if (!exists(doc)) throw categoryNotFound(id);
    checkPreconditions(preconditions, doc.version);
    if (doc.state === "DELETING") return keep({ op: doc.op, joined: true });
    const op = doc.op + 1;
    return put({ ...doc, state: "DELETING", op, pending: true }, { op, joined: false });
  };

/**
 * Raises the number of the latest deletion to `known`, which Pet has seen: the category was restored from an older copy. The
 * result is the category.
 */
export const knowDeletion =
  (known: number): Rule<CategoryDoc | undefined> =>
  (doc) => {
    if (doc?.state !== "ACTIVE" || doc.op >= known) return keep(doc);
    const next = { ...doc, op: known };
    return put(next, next);
  };

/** Gives deletion `op`, which has not ended, a number above `latest`. The result says whether it has it. */
export const renumberDeletion =
  (op: number, latest: number): Rule<boolean> =>
  (doc) =>
    doc?.state === "DELETING" && doc.op === op && latest >= op ? put({ ...doc, op: latest + 1 }, true) : keep(false);

/** Ends deletion `op`. The result is true only for the caller whose write was stored. */
export const endDeletion =
  (op: number, end: "DELETED" | "ACTIVE"): Rule<boolean> =>
  (doc) => {
    if (doc?.state !== "DELETING" || doc.op !== op) return keep(false);
    const cleared = { visible: undefined, pending: undefined };
    if (end === "DELETED") return put({ ...doc, ...cleared, ...input.empty, name: "", state: "DELETED" }, true);
    return put({ ...doc, state: "ACTIVE", pending: undefined }, true);
  };
