/**
 * The records of one service as they are stored, without what an engine adds to them: for moving them between engines, or
 * into a file. Nothing is validated, so that a document that can't be read is moved like any other.
 */

import { decodeSame, encode, type Fields } from "./document/codec.ts";
import type { Id } from "./port.ts";

/** A document, or its bytes if no engine can have written them under this id. */
export type Entry = { readonly _id: Id; readonly doc: Fields } | { readonly _id: Id; readonly bytes: Uint8Array };

export interface Records {
  /** In order of their names. */
  collections(): Promise<readonly string[]>;
  count(collection: string): Promise<number>;
  /** The next entries beyond `after`, in ascending order. */
  page(collection: string, after: Id | undefined, limit: number): Promise<readonly Entry[]>;
  /** The last numbers that were taken, by the names of the sequences, in order. */
  sequences(): Promise<ReadonlyMap<string, number>>;
  /** The greatest id of a collection. */
  last(collection: string): Promise<Id | undefined>;
  /** Adds entries, in ascending order and beyond the last. If that is cut short, those that were added are the first. */
  add(collection: string, entries: readonly Entry[]): Promise<void>;
  setSequence(name: string, last: number): Promise<void>;
}

export function entryOf(_id: Id, bytes: Uint8Array): Entry {
  const doc = decodeSame(bytes);
  return doc?._id === _id ? { _id, doc } : { _id, bytes };
}

export const bytesOf = (entry: Entry): Uint8Array => ("doc" in entry ? encode(entry.doc) : entry.bytes);
