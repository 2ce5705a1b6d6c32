/** What may become of a category. Each rule takes the stored document and decides; none does I/O. */

import { type Decision, keep, put } from "@petstore/store/port";
import { DomainError } from "../resource/errors.ts";
import { type Condition, checkMatch, succeed } from "../resource/record.ts";
import { type CategoryDoc, type CategoryParams, said, shown } from "./model.ts";

type Decide<R> = (doc: CategoryDoc | undefined) => Decision<CategoryDoc, R>;

/** True for what the outside may see. */
const exists = (doc: CategoryDoc | undefined): doc is CategoryDoc =>
  doc?.state === "ACTIVE" || doc?.state === "DELETING";

export const categoryNotFound = (id: bigint | number) =>
  new DomainError("CATEGORY_NOT_FOUND", `No category has the id ${id}.`);

/** Writes a new category, unless its id is already written. */
export const insert =
  (id: number, params: CategoryParams): Decide<CategoryDoc> =>
  (doc) => {
    if (doc) return keep(doc);
    const fresh = { ...params, _id: id, version: 1, state: "ACTIVE", listed: true, op: 0, format: 1 } as const;
    return put(fresh, { ...fresh, rev: 1 });
  };

/** Writes a tombstone in place of a record that was never written. */
export const giveUp =
  (id: number): Decide<void> =>
  (doc) =>
    doc ? keep(undefined) : put(tombstone(id, "VOID", 1, 0), undefined);

/** Changes what is given: an undefined member removes its field. "busy" while a deletion is undecided. */
export const update =
  (id: bigint, change: Partial<CategoryParams>, condition: Condition): Decide<CategoryDoc | "busy"> =>
  (doc) => {
    if (!exists(doc)) throw categoryNotFound(id);
    if (doc.state === "DELETING") return keep("busy");
    checkMatch(condition, doc.version);
    const next = succeed(doc, change, shown);
    return next.version === doc.version ? keep(doc) : put(next, next);
  };

/** Begins a deletion, or joins the one that is under way. Returns its number. */
export const beginDeletion =
  (id: bigint, condition: Condition): Decide<number> =>
  (doc) => {
    if (!exists(doc)) throw categoryNotFound(id);
    checkMatch(condition, doc.version);
    if (doc.state === "DELETING") return keep(doc.op);
    const op = doc.op + 1;
    return put({ ...doc, state: "DELETING", op, todo: true }, op);
  };

/** Decides deletion `op`. True for the one whose step was stored. */
export const endDeletion =
  (op: number, gone: boolean): Decide<boolean> =>
  (doc) => {
    if (doc?.state !== "DELETING" || doc.op !== op) return keep(false);
    const shed = { listed: undefined, todo: undefined };
    if (gone) return put({ ...doc, ...shed, ...tombstone(doc._id, "DELETED", doc.version, op) }, true);
    return put({ ...doc, state: "ACTIVE", todo: undefined }, true);
  };

const tombstone = (id: number, state: "DELETED" | "VOID", version: number, op: number) =>
  ({ ...said.unsaid, _id: id, version, state, name: "", op, format: 1 }) as const;
