/**
 * What a process knows of the documents of a collection without asking. Other processes write as well, so it is only what a
 * change may begin with: the guarded write confirms it, and what is decided without a write is decided again on a fresh read.
 */
import { encode, type Fields } from "../document/codec.ts";
import { type Recent, recentDocuments } from "../document/recent.ts";
import type { Doc, Id } from "../port.ts";
import type { Stored } from "./operation-log.ts";

const NOTHING = new Uint8Array();

export interface Known<T extends Doc> {
  /** The document, or that there is none, if either can be told. */
  base(id: Id): { readonly document: Stored<T> | undefined } | undefined;
  /** The document that bytes which were just read stand for. Throws `Corrupt`. */
  read(id: Id, bytes: Uint8Array): Stored<T>;
  /** The same for a document of a page. */
  readInPassing(id: Id, bytes: Uint8Array): Stored<T>;
  /** Nothing was found. */
  noteAbsent(id: Id): void;
  noteWritten(id: Id, fields: Fields, document: Stored<T>): void;
  /** What was known is out of date, or may be. */
  forget(id: Id): void;
}

export function knownDocuments<T extends Doc>(decode: (bytes: Uint8Array) => Stored<T>): Known<T> {
  const recent: Recent<Stored<T>> = recentDocuments();
  /** Ids are given in ascending order, so what is beyond all that was seen is most likely new. */
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
