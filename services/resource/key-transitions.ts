/**
 * State transitions of an idempotency key. Each is a pure function from the stored document to a decision.
 * `docs/reliability.md` has the diagram.
 *
 *     FREE -> CLAIMED       claim: from now on the key refers to a record
 *     CLAIMED -> CLAIMED    replace: the record was abandoned, and a record with a fresh id takes its place
 *     CLAIMED -> FREE       free: the record was refused
 *
 * A key without a document is FREE. `fence` and `free` raise the fencing epoch, an id of the records' sequence: attempts
 * that began before it can't claim the key any more, however late they arrive.
 */

import * as s from "@petstore/store/document-schema";
import { type Decide, type DocumentSchema, type Infer, keep, put, schema } from "@petstore/store/port";

const keySchema = s.object({
  _id: s.string,
  rev: s.int,
  /** The record that the key refers to while it is CLAIMED. Absent while it is FREE. */
  recordId: s.int.optional,
  fingerprint: s.string,
  /** What the record is made from; the first answer is a function of it. */
  params: s.object({}) as DocumentSchema<object>,
  /** Grows with every refusal. */
  fencingEpoch: s.int,
  /** The hour in which the key was last claimed or its epoch raised. */
  hour: s.int,
});
export type KeyDoc = Infer<typeof keySchema>;
export const KEYS = schema<KeyDoc>()("keys", { hour: ["hour"] }, keySchema);

/** One call of a create under a key. */
export interface KeyedAttempt<P> {
  readonly key: string;
  readonly fingerprint: string;
  readonly params: P;
  /** The epoch that the caller has seen, if it sends one. */
  readonly seenEpoch: number | undefined;
}

/** The result says whether the transition was stored. */
type Transition = Decide<KeyDoc, boolean>;

export const epochOf = (doc: KeyDoc | undefined): number => doc?.fencingEpoch ?? 0;

/**
 * Whether the attempt began before the key's last refusal. If its caller sends the epoch that it has seen, that is
 * compared; the caller learns the current epoch from the refusal and tries again. Otherwise the attempt's `id` is
 * compared, which shows whether it was taken before or after.
 */
export const isFenced = ({ seenEpoch }: KeyedAttempt<object>, epoch: number, id: number): boolean =>
  seenEpoch === undefined ? id <= epoch : seenEpoch < epoch;

/** FREE -> CLAIMED, unless the epoch has changed since the attempt was judged by it. */
export const claim =
  (attempt: KeyedAttempt<object>, id: number, epoch: number, hour: number): Transition =>
  (doc) =>
    doc?.recordId === undefined && epochOf(doc) === epoch
      ? put({ ...doc, ...claimed(attempt, id), fencingEpoch: epoch, hour }, true)
      : keep(false);

/**
 * CLAIMED -> CLAIMED: replaces an abandoned record, if the key still refers to it. With an `epoch`, only if that has not
 * changed since the attempt was judged by it.
 */
export const replace =
  (attempt: KeyedAttempt<object>, abandonedId: number, id: number, hour: number, epoch?: number): Transition =>
  (doc) => {
    if (doc?.recordId !== abandonedId || (epoch ?? doc.fencingEpoch) !== doc.fencingEpoch) return keep(false);
    const fencingEpoch = Math.max(doc.fencingEpoch, abandonedId);
    return put({ ...doc, ...claimed(attempt, id), fencingEpoch, hour }, true);
  };

/**
 * CLAIMED -> FREE after the refusal of record `refusedId`, unless the key refers to another record by now. A key that is
 * FREE, or has expired meanwhile, is written too: the epoch has to fence off all attempts that began before the refusal.
 */
export const free =
  ({ key, fingerprint, params }: KeyedAttempt<object>, refusedId: number, epoch: number, hour: number): Transition =>
  (doc) => {
    if (doc?.recordId !== undefined && doc.recordId !== refusedId) return keep(false);
    const fencingEpoch = Math.max(epochOf(doc), epoch);
    return put({ fingerprint, params, ...doc, _id: key, recordId: undefined, fencingEpoch, hour }, true);
  };

/** Raises the epoch; the state stays. */
export const fence =
  (epoch: number, hour: number): Transition =>
  (doc) =>
    doc ? put({ ...doc, fencingEpoch: Math.max(doc.fencingEpoch, epoch), hour }, true) : keep(false);

const claimed = ({ key, fingerprint, params }: KeyedAttempt<object>, recordId: number) =>
  ({ _id: key, recordId, fingerprint, params }) as const;
