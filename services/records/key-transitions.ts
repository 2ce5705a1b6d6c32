/**
 * State transitions of an idempotency key. Each is a pure function from the stored document to a decision; the result is the
 * key as it is stored then.
 *
 *     absent -> CLAIMED     claim: the key is bound to a body, and names the record that it makes
 *     CLAIMED -> CLAIMED    replace: no record came of the id, and the key names a fresh one
 *                           renew: the key would expire while its record is being made
 *     CLAIMED -> absent     when it has expired
 */
import * as s from "@petstore/store/document-schema";
import { type Decide, type Infer, keep, put, schema } from "@petstore/store/port";

const keySchema = s.object({
  _id: s.string,
  rev: s.int,
  /** The record that the key stands for. */
  recordId: s.int,
  /** Of the body that the key is bound to. */
  fingerprint: s.string,
  /** The hour in which it was claimed, replaced or renewed. */
  hour: s.int,
});
export type KeyDoc = Infer<typeof keySchema>;
export const KEYS = schema<KeyDoc>()("keys", { hour: ["hour"] }, keySchema);

type Claim = Omit<KeyDoc, "rev">;

/** Claims the key, unless it is claimed. */
export const claim =
  (claimed: Claim): Decide<KeyDoc, Claim> =>
  (doc) =>
    doc ? keep(doc) : put(claimed, claimed);

/** Names the record `id` instead of `former`, of which nothing came, if the key still names that. */
export const replace =
  (former: number, id: number, hour: number): Decide<KeyDoc, void> =>
  (doc) =>
    doc?.recordId === former ? put({ ...doc, recordId: id, hour }, undefined) : keep(undefined);

/** Begins the key's time anew, if it still names the record. The result says whether it does. */
export const renew =
  (recordId: number, hour: number): Decide<KeyDoc, boolean> =>
  (doc) =>
    doc?.recordId === recordId ? put({ ...doc, hour }, true) : keep(false);
