/**
 * A cache of what a process knows of the documents of a collection. Other processes write as well, so it only serves as
 * the start of a change: the guarded write confirms it, and a decision without a write is made again on a fresh read.
 */
import { encode, type Fields } from "../document/codec.ts";
import { type Recent, recentDocuments } from "../document/recent.ts";
import type { Doc, Id } from "../port.ts";
import type { Stored } from "./operation-log.ts";

const NOTHING = new Uint8Array();

export interface Known<T extends Doc> {
  /** The document, or its absence, if either is known. */
  base(id: Id): { readonly document: Stored<T> | undefined } | undefined;
  /** Decodes bytes that were just read. Throws `Corrupt`. */
  read(id: Id, bytes: Uint8Array): Stored<T>;
  /** The same for a document of a page. */
  readInPassing(id: Id, bytes: Uint8Array): Stored<T>;
  /** Remembers that there is no such document. */
  noteAbsent(id: Id): void;
  noteWritten(id: Id, fields: Fields, document: Stored<T>): void;
  /** Forgets what is out of date, or may be. */
  forget(id: Id): void;
}

export function knownDocuments<T extends Doc>(decode: (bytes: Uint8Array) => Stored<T>): Known<T> {
  const recent: Recent<Stored<T>> = recentDocuments();
  /** Ids are assigned in ascending order, so an id above all that were seen is most likely new. */
  let highest = Number.POSITIVE_INFINITY;
  const see = (id: Id) => {
    if (typeof id === "number" && (id > highest || highest === Number.POSITIVE_INFINITY)) highest = id;
  };
  return {
    base: (id) => recent.last(id) ?? (typeof id === "number" && id > highest ? { document: undefined } : undefined),
    read(id, bytes) {
      see(id);
      return recent.read(id, bytes, decode);
    },
    readInPassing(id, bytes) {
      see(id);
      return recent.readInPassing(id, bytes, decode);
    },
    noteAbsent: (id) => recent.note(id, NOTHING, undefined),
    noteWritten(id, fields, document) {
      see(id);
      recent.note(id, encode(fields), document);
    },
    forget: recent.forget,
  };
}
