/**
 * A cache of the documents of a collection that were read or written last. The same bytes always give the same document,
 * so they are decoded once for all readers, and a document that did not change is the same object with every read.
 */
import type { Id } from "../port.ts";

/**
 * Limits of the cache: bytes of BSON in each of its two generations, and in one document. The cache is for documents that
 * are read repeatedly, or changed right after they were read. A larger one would only hide what documents cost as their
 * number grows.
 */
const MAX_BYTES = 256 * 1024;
const MAX_BYTES_OF_ONE = 64 * 1024;
/** Overhead of one entry, in bytes. */
const ENTRY_BYTES = 64;
/** Slots that remember the ids of documents read in passing. A power of two. */
const PASSED = 1024;

interface Entry<S> {
  readonly bytes: Uint8Array;
  /** Absent when no document was found. */
  readonly document: S | undefined;
}

export interface Recent<S> {
  /** The document that the bytes encode. Throws what `decode` throws. */
  read(id: Id, bytes: Uint8Array, decode: (bytes: Uint8Array) => S): S;
  /**
   * The same for a document that is read in passing, such as one of a page. It is remembered only if it is soon read
   * again: most never are, and remembering a document costs more than decoding it (the doorkeeper of TinyLFU, Einziger et
   * al. 2017).
   */
  readInPassing(id: Id, bytes: Uint8Array, decode: (bytes: Uint8Array) => S): S;
  /** Remembers a document that was written, or that there is none. */
  note(id: Id, bytes: Uint8Array, document: S | undefined): void;
  /** What was read or written last. It may be out of date: another process may have written since. */
  last(id: Id): { readonly document: S | undefined } | undefined;
  forget(id: Id): void;
}

/** Two generations: when the young one is full it becomes the old one, and the old one before it is dropped. */
export function recentDocuments<S>(): Recent<S> {
  let young = new Map<Id, Entry<S>>();
  let old = new Map<Id, Entry<S>>();
  let size = 0;
  const passed: (Id | undefined)[] = Array.from({ length: PASSED });

  function forget(id: Id): void {
    const known = young.get(id);
    if (known) size -= known.bytes.length + ENTRY_BYTES;
    young.delete(id);
    old.delete(id);
  }

  function note(id: Id, given: Uint8Array, document: S | undefined): void {
    forget(id);
    if (given.length > MAX_BYTES_OF_ONE) return;
    // A copy, for these bytes may lie in the buffer of a whole answer, or in one of 64 KiB that Node shares out.
    const bytes = given.length === given.buffer.byteLength ? given : new Uint8Array(given);
    size += bytes.length + ENTRY_BYTES;
    young.set(id, { bytes, document });
    if (size < MAX_BYTES) return;
    old = young;
    young = new Map();
    size = 0;
  }

  function last(id: Id): Entry<S> | undefined {
    const known = young.get(id) ?? old.get(id);
    if (known && !young.has(id)) note(id, known.bytes, known.document);
    return known;
  }

  const isOf = (entry: Entry<S>, bytes: Uint8Array) =>
    entry.bytes === bytes || Buffer.compare(entry.bytes, bytes) === 0;

  function noted(id: Id, bytes: Uint8Array, document: S): S {
    note(id, bytes, document);
    return document;
  }

  /** Whether it was read in passing before, as far as that is known. */
  function hasPassed(id: Id): boolean {
    // Other ids would have to be hashed, and few lists have those.
    if (typeof id !== "number") return true;
    const place = id & (PASSED - 1);
    const before = passed[place];
    passed[place] = id;
    return before === id;
  }

  return {
    note,
    last,
    forget,
    read(id, bytes, decode) {
      const known = last(id);
      if (known?.document && isOf(known, bytes)) return known.document;
      return noted(id, bytes, decode(bytes));
    },
    readInPassing(id, bytes, decode) {
      const known = last(id);
      if (known?.document && isOf(known, bytes)) return known.document;
      const document = decode(bytes);
      return known || hasPassed(id) ? noted(id, bytes, document) : document;
    },
  };
}
