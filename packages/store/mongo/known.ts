/**
 * A cache of what a process knows of the documents of a collection. Other processes write as well, so it only serves as
 * the start of a change: the guarded write confirms it, and a decision without a write is made again on a fresh read.
 */
import { encode, type Fields } from "../document/codec.ts";
import type { Doc, Id } from "../port.ts";
import type { Stored } from "./operation-log.ts";

/** Bytes of BSON in each of the cache's two generations. */
const MAX_BYTES = 256 * 1024;
/** Overhead of one entry, in bytes. */
const ENTRY_BYTES = 64;

interface Entry<T extends Doc> {
  readonly bytes: number;
  /** Undefined when there is no such document. */
  readonly document: Stored<T> | undefined;
}

export type Known<T extends Doc> = ReturnType<typeof knownDocuments<T>>;

export function knownDocuments<T extends Doc>(decode: (bytes: Uint8Array) => Stored<T>) {
  // When the young generation is full it becomes the old one, and the old one before it is dropped.
  let young = new Map<Id, Entry<T>>();
  let old = new Map<Id, Entry<T>>();
  let size = 0;
  /** Ids are assigned in ascending order, so an id above all that were seen is most likely new. */
  let highest = Number.POSITIVE_INFINITY;

  /** Forgets what is out of date, or may be. */
  function forget(id: Id): void {
    size -= young.get(id)?.bytes ?? 0;
    young.delete(id);
    old.delete(id);
  }

  function note(id: Id, length: number, document: Stored<T> | undefined): void {
    forget(id);
    const bytes = ENTRY_BYTES + length;
    size += bytes;
    young.set(id, { bytes, document });
    if (document && typeof id === "number" && (id > highest || highest === Number.POSITIVE_INFINITY)) highest = id;
    if (size < MAX_BYTES) return;
    old = young;
    young = new Map();
    size = 0;
  }

  return {
    /** The document, or its absence, if either is known. */
    base: (id: Id): Pick<Entry<T>, "document"> | undefined =>
      young.get(id) ?? old.get(id) ?? (typeof id === "number" && id > highest ? { document: undefined } : undefined),
    /** Decodes bytes that were just read. Throws `Corrupt`. */
    read(bytes: Uint8Array): Stored<T> {
      const document = decode(bytes);
      note(document.doc._id, bytes.length, document);
      return document;
    },
    /** Remembers that there is no such document. */
    noteAbsent: (id: Id) => note(id, 0, undefined),
    noteWritten: (id: Id, fields: Fields, document: Stored<T>) => note(id, encode(fields).length, document),
    forget,
  };
}
