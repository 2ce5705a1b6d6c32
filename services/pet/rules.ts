/** What may become of a pet. Each rule takes the stored document and decides; none does I/O. */

import { type Decision, keep, put } from "@petstore/store/port";
import { DomainError } from "../resource/errors.ts";
import { type Condition, checkMatch, type Status, succeed } from "../resource/record.ts";
import {
  type Intent,
  NO_FACTS,
  type PetChange,
  type PetDoc,
  type PetParams,
  type PetView,
  type Refusal,
  shown,
  viewOf,
} from "./model.ts";

type Decide<R> = (doc: PetDoc | undefined) => Decision<PetDoc, R>;

/** The status that follows from stock and listing, as Inventory told it. */
export interface Stock {
  readonly status: Status;
  readonly statusRev: number;
}

/** What was said of the category that a pet is to move to. Once it was seen to exist, its gate knows the rest. */
export type Admission = "admitted" | Refusal;

/**
 * How a write begins: done at once, in the way of an unfinished one, as an intent that is to be carried out, or not yet,
 * for it moves the pet and nobody has asked whether the category lets it in.
 */
export type Begun =
  | { readonly kind: "done"; readonly view: PetView }
  | { readonly kind: "not admitted"; readonly categoryId: number }
  | { readonly kind: "busy"; readonly op: number }
  | { readonly kind: "intent"; readonly op: number };

export const petNotFound = (id: bigint | number) => new DomainError("PET_NOT_FOUND", `No pet has the id ${id}.`);

const messages: Record<Refusal, string> = {
  CATEGORY_NOT_FOUND: "No category has this id.",
  INSUFFICIENT_STOCK: "A pet without stock can't be listed as available. Set its inventory quantity above 0.",
  PET_HAS_OPEN_ORDERS: "Open orders hold units of the pet. Complete or delete them first.",
  CONCURRENT_UPDATE: "The category is just being deleted. Try again.",
};
export const refusalError = (refusal: Refusal) =>
  new DomainError(refusal, messages[refusal], refusal === "CATEGORY_NOT_FOUND" ? { path: "pet.category_id" } : {});

/** Takes over a status if it is news. */
const newer = (doc: PetDoc, stock: Stock | undefined): Partial<Stock> =>
  stock && stock.statusRev > doc.statusRev ? { status: stock.status, statusRev: stock.statusRev } : {};

/** Writes a pet that is to be created, unless its id is already written. */
export const insert =
  (id: number, { facts, categoryId, listing = "available" }: PetParams): Decide<void> =>
  (doc) => {
    if (doc) return keep(undefined);
    const status = { status: listing, statusRev: 0, listing };
    const fresh = { _id: id, version: 1, state: "CREATING", facts, categoryId, member: categoryId, ...status } as const;
    return put({ ...fresh, op: 0, todo: true, format: 1 }, undefined);
  };

/** Writes a tombstone in place of a pet that was never written: refused, or given up. */
export const insertVoid =
  (id: number, refusal?: Refusal): Decide<void> =>
  (doc) => {
    if (doc) return keep(undefined);
    const nothing = { facts: NO_FACTS, categoryId: 0, status: "sold", statusRev: 0, listing: "sold" } as const;
    return put({ _id: id, version: 1, state: "VOID", ...nothing, op: 0, refusal, format: 1 }, undefined);
  };

/** A pet whose category is gone is refused for good. */
export const refuse: Decide<void> = (doc) =>
  doc?.state === "CREATING"
    ? put(tombstone(doc, "VOID", { refusal: "CATEGORY_NOT_FOUND" }), undefined)
    : keep(undefined);

/** The entry at Inventory is open: the pet is there. */
export const activate =
  (stock: Stock): Decide<void> =>
  (doc) => {
    if (doc?.state !== "CREATING") return keep(undefined);
    const news = newer(doc, stock);
    const firstStatus = news.status ?? doc.status;
    return put({ ...doc, ...news, firstStatus, state: "ACTIVE", listed: true, todo: undefined }, undefined);
  };

/**
 * Begins a change. New facts alone are done in one step, but wait like the others for an unfinished intent, or If-Match
 * would have been judged on a pet that is about to change. Whether it moves is known here and not before: until then it
 * may come to be, or be moved by another write.
 */
export const beginUpdate =
  (id: bigint, change: PetChange, condition: Condition, admission: Admission | undefined): Decide<Begun> =>
  (doc) => {
    if (doc?.state !== "ACTIVE") throw petNotFound(id);
    if (doc.intent) return keep({ kind: "busy", op: doc.intent.op });
    checkMatch(condition, doc.version);
    const joining = change.categoryId === doc.categoryId ? undefined : change.categoryId;
    if (joining !== undefined && admission !== "admitted") {
      if (admission) throw refusalError(admission);
      return keep({ kind: "not admitted", categoryId: joining });
    }
    const facts = { ...doc.facts, ...change.facts };
    if (joining !== undefined || change.listing !== undefined) return putIntent(doc, { ...change, facts }, joining);
    const next = succeed(doc, { facts }, shown);
    const begun = { kind: "done", view: viewOf(next) } as const;
    return next.version === doc.version ? keep(begun) : put(next, begun);
  };

/** Begins a deletion. */
export const beginDeletion =
  (id: bigint, condition: Condition): Decide<Begun> =>
  (doc) => {
    if (doc?.state !== "ACTIVE") throw petNotFound(id);
    if (doc.intent) return keep({ kind: "busy", op: doc.intent.op });
    checkMatch(condition, doc.version);
    return putIntent(doc, { delete: true }, undefined);
  };

function putIntent(doc: PetDoc, change: Omit<Intent, "op">, joining: number | undefined): Decision<PetDoc, Begun> {
  const op = doc.op + 1;
  return put({ ...doc, op, intent: { ...change, op }, joining, todo: true }, { kind: "intent", op });
}

/** Carries an intent out: all that it says and the status that Inventory answered, in one change. */
export const applyIntent =
  (op: number, stock: Stock | undefined): Decide<void> =>
  (doc) => {
    if (doc?.intent?.op !== op) return keep(undefined);
    const { facts = doc.facts, categoryId = doc.categoryId } = doc.intent;
    const next = succeed(doc, { facts, categoryId, member: categoryId, ...newer(doc, stock) }, shown);
    return put({ ...next, ...settled, last: { op, shown: viewOf(next) } }, undefined);
  };

export const applyDeletion =
  (op: number): Decide<void> =>
  (doc) =>
    doc?.intent?.op === op ? put(tombstone(doc, "DELETED", { last: { op } }), undefined) : keep(undefined);

/** Drops an intent that was refused. */
export const dropIntent =
  (op: number, refusal: Refusal): Decide<void> =>
  (doc) =>
    doc?.intent?.op === op ? put({ ...doc, ...settled, last: { op, refusal } }, undefined) : keep(undefined);

const settled = { intent: undefined, joining: undefined, todo: undefined } as const;

/** Takes over a status that Inventory reports, if it is news. A pet that is gone has no use for it. */
export const applyStatus =
  (id: bigint, stock: Stock): Decide<void> =>
  (doc) => {
    if (!doc) throw petNotFound(id);
    const news = newer(doc, stock);
    if (doc.state === "VOID" || doc.state === "DELETED" || news.status === undefined) return keep(undefined);
    return put(doc.state === "CREATING" ? { ...doc, ...news } : succeed(doc, news, shown), undefined);
  };

/** What remains of a pet: its id is never used again, and late messages find out that it is gone. */
function tombstone(doc: PetDoc, state: "VOID" | "DELETED", end: Pick<PetDoc, "refusal" | "last">): PetDoc {
  const shed = { ...settled, listed: undefined, member: undefined, last: undefined, refusal: undefined };
  return { ...doc, ...shed, state, facts: NO_FACTS, categoryId: 0, ...end };
}
