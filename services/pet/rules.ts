/** State transitions of a pet. Each rule is a pure function from the stored document to a decision. */

import { type Decision, keep, put } from "@petstore/store/port";
import type { StockStatus } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { checkPreconditions, DomainError, type Preconditions } from "../records/errors.ts";
import { FORMAT, fromPetStatus, type Status, succeed } from "../records/record.ts";
import {
  type Intent,
  NO_FACTS,
  type PetChange,
  type PetDoc,
  type PetParams,
  type PetRefusal,
  type PetView,
  petOf,
  viewOf,
} from "./model.ts";

type Rule<R> = (doc: PetDoc | undefined) => Decision<PetDoc, R>;

/** A status with its revision, as Inventory derives it from stock and listing. */
interface NumberedStatus {
  readonly status: Status;
  readonly statusRev: number;
}

export const toNumberedStatus = (stock: StockStatus | undefined): NumberedStatus | undefined =>
  stock && { status: fromPetStatus(stock.status), statusRev: Number(stock.statusRev) };

/** Result of checking the category that a pet is to move to: it exists, or why the pet can't join it. */
export type CategoryCheck = "exists" | PetRefusal;

/**
 * How a write begins. "done": it took one step. "intent": it is stored as an intent that is to be carried out. "busy":
 * the intent of another write must be finished first. "category unchecked": the category that it moves the pet to must be
 * checked first.
 */
export type Begun =
  | { readonly kind: "done"; readonly view: PetView }
  | { readonly kind: "category unchecked"; readonly categoryId: number }
  | { readonly kind: "busy" | "intent"; readonly op: number; readonly pet: PetDoc };

export const petNotFound = (id: bigint | number) => new DomainError("PET_NOT_FOUND", `No pet has the id ${id}.`);

const messages: Record<PetRefusal, string> = {
  CATEGORY_NOT_FOUND: "No category has this id.",
  INSUFFICIENT_STOCK: "A pet without stock can't be listed as available. Set its inventory quantity above 0.",
  PET_HAS_OPEN_ORDERS: "Open orders hold units of the pet. Complete or delete them first.",
  CONCURRENT_UPDATE: "The category is just being deleted. Try again.",
};
export const refusalError = (refusal: PetRefusal) =>
  new DomainError(refusal, messages[refusal], refusal === "CATEGORY_NOT_FOUND" ? { path: "pet.category_id" } : {});

/** Most steps that one call takes in a saga; the rest is left to the recovery worker or to later calls. */
export const MAX_STEPS = 4;

export const unfinished = () =>
  new DomainError(
    "UNAVAILABLE",
    "The write could not be finished now; it may still take effect. Read the pet, or try again.",
  );

/** The status, if it is newer than that of the pet. */
const newer = (doc: PetDoc, stock: NumberedStatus | undefined): Partial<NumberedStatus> =>
  stock && stock.statusRev > doc.statusRev ? { status: stock.status, statusRev: stock.statusRev } : {};

/** Writes a pet that is to be created, unless its id is already written. */
export const insert =
  (id: number, { facts, categoryId, listing = "available" }: PetParams): Rule<void> =>
  (doc) => {
    if (doc) return keep(undefined);
    const status = { status: listing, statusRev: 0, listing };
    const fresh = { _id: id, version: 1, state: "CREATING", facts, categoryId, member: categoryId, ...status } as const;
    return put({ ...fresh, op: 0, pending: true, format: FORMAT }, undefined);
  };

/** Stores that a pet was refused under a key because its category is gone, unless its id is already written. */
export const insertAborted =
  (id: number): Rule<void> =>
  (doc) => {
    if (doc) return keep(undefined);
    const empty = { facts: NO_FACTS, categoryId: 0, status: "sold", statusRev: 0, listing: "sold" } as const;
    return put({ _id: id, version: 1, state: "ABORTED", ...empty, op: 0, format: FORMAT }, undefined);
  };

/** CREATING -> ABORTED: the pet's category is deleted. */
export const abort: Rule<void> = (doc) =>
  doc?.state === "CREATING" ? put(tombstone(doc, "ABORTED"), undefined) : keep(undefined);

/** CREATING -> ACTIVE: the pet's entry at Inventory is open. */
export const activate =
  (stock: NumberedStatus): Rule<void> =>
  (doc) => {
    if (doc?.state !== "CREATING") return keep(undefined);
    const newStatus = newer(doc, stock);
    const firstStatus = newStatus.status ?? doc.status;
    const active = { state: "ACTIVE", visible: true, pending: undefined } as const;
    return put({ ...doc, ...newStatus, firstStatus, ...active }, undefined);
  };

/**
 * Begins an update. New facts alone take one step. Even these wait for an unfinished intent; otherwise If-Match would be
 * judged on a pet that is about to change. Whether the update moves the pet is decided here, on the stored document: a
 * concurrent write may have created or moved the pet since the caller read it.
 */
export const beginUpdate =
  (id: bigint, change: PetChange, preconditions: Preconditions, category: CategoryCheck | undefined): Rule<Begun> =>
  (doc) => {
    if (doc?.state !== "ACTIVE") throw petNotFound(id);
    if (doc.intent) return keep({ kind: "busy", op: doc.intent.op, pet: doc });
    checkPreconditions(preconditions, doc.version);
    const joining = change.categoryId === doc.categoryId ? undefined : change.categoryId;
    if (joining !== undefined && category !== "exists") {
      if (category) throw refusalError(category);
      return keep({ kind: "category unchecked", categoryId: joining });
    }
    const facts = { ...doc.facts, ...change.facts };
    if (joining !== undefined || change.listing !== undefined) return putIntent(doc, { ...change, facts }, joining);
    const next = succeed(doc, { facts }, petOf);
    const begun = { kind: "done", view: viewOf(next) } as const;
    return next.version === doc.version ? keep(begun) : put(next, begun);
  };

export const beginDeletion =
  (id: bigint, preconditions: Preconditions): Rule<Begun> =>
  (doc) => {
    if (doc?.state !== "ACTIVE") throw petNotFound(id);
    if (doc.intent) return keep({ kind: "busy", op: doc.intent.op, pet: doc });
    checkPreconditions(preconditions, doc.version);
    return putIntent(doc, { delete: true }, undefined);
  };

function putIntent(doc: PetDoc, change: Omit<Intent, "op">, joining: number | undefined): Decision<PetDoc, Begun> {
  const op = doc.op + 1;
  const pet: PetDoc = { ...doc, op, intent: { ...change, op }, joining, pending: true };
  return put(pet, { kind: "intent", op, pet });
}

/** Applies an intent: all that it changes, and the status that Inventory answered, in one write. */
export const applyIntent =
  (op: number, stock: NumberedStatus | undefined): Rule<void> =>
  (doc) => {
    if (doc?.intent?.op !== op) return keep(undefined);
    const { facts = doc.facts, categoryId = doc.categoryId } = doc.intent;
    const next = succeed(doc, { facts, categoryId, member: categoryId, ...newer(doc, stock) }, petOf);
    return put({ ...next, ...withoutIntent, last: { op, shown: viewOf(next) } }, undefined);
  };

export const applyDeletion =
  (op: number): Rule<void> =>
  (doc) =>
    doc?.intent?.op === op ? put(tombstone(doc, "DELETED", { op }), undefined) : keep(undefined);

/** Drops an intent that was refused. */
export const dropIntent =
  (op: number, refusal: PetRefusal): Rule<void> =>
  (doc) =>
    doc?.intent?.op === op ? put({ ...doc, ...withoutIntent, last: { op, refusal } }, undefined) : keep(undefined);

/**
 * Gives intent `op` a number above `latest`, the latest operation that Inventory knows. Inventory knows one as late as an
 * intent that has not ended only if the pet was restored from an older copy.
 */
export const renumberIntent =
  (op: number, latest: number): Rule<void> =>
  (doc) =>
    doc?.intent?.op === op && latest >= op
      ? put({ ...doc, op: latest + 1, intent: { ...doc.intent, op: latest + 1 } }, undefined)
      : keep(undefined);

const withoutIntent = { intent: undefined, joining: undefined, pending: undefined } as const;

/**
 * Stores a status that Inventory publishes, if it is newer; the result is the status that the pet keeps instead, if it is
 * another. A tombstone is left as it is. A pet that is being deleted may
 * be gone for other callers already, so it must not change any more; if its deletion is refused, Inventory publishes
 * again.
 */
export const applyStatus =
  (id: bigint, stock: NumberedStatus): Rule<NumberedStatus | undefined> =>
  (doc) => {
    if (!doc) throw petNotFound(id);
    if (doc.state === "ABORTED" || doc.state === "DELETED") return keep(undefined);
    const newStatus = newer(doc, stock);
    if (newStatus.status === undefined) {
      const isOther = doc.statusRev > stock.statusRev || doc.status !== stock.status;
      return keep(isOther ? { status: doc.status, statusRev: doc.statusRev } : undefined);
    }
    if (doc.intent?.delete) throw new DomainError("CONCURRENT_UPDATE", "The pet is just being deleted.");
    return put(doc.state === "CREATING" ? { ...doc, ...newStatus } : succeed(doc, newStatus, petOf), undefined);
  };

/** What is left of a pet, so that its id is never used again and late messages find that it is gone. */
function tombstone(doc: PetDoc, state: "ABORTED" | "DELETED", last?: PetDoc["last"]): PetDoc {
  const cleared = { ...withoutIntent, visible: undefined, member: undefined };
  return { ...doc, ...cleared, state, facts: NO_FACTS, categoryId: 0, last };
}
