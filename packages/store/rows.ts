/**
 * What one service has stored, as it is: to look for damage, and to move it between engines or into a file. Nothing is validated
 * on the way, while the port leaves out what it can't read, and builds what is missing.
 */
import type { Fields } from "./document/codec.ts";
import type { Declaration } from "./engine/collections.ts";
import type { Doc, DocumentSchema, Id } from "./port.ts";

export { encode, type Fields, readRow } from "./document/codec.ts";

/** A stored document, which may be damaged. */
export interface Row {
  readonly _id: Id;
  readonly doc: Uint8Array;
  /** The fields by which lists find the document, where the engine keeps them beside it. */
  readonly indexed?: Readonly<Record<string, unknown>> | undefined;
}

/** Of a schema, what an inspection needs. Any schema of the port will do. */
export type Kind<T> = Pick<Declaration, "name" | "indexes"> & { readonly document?: DocumentSchema<T> | undefined };

/** All that is stored, so that damage can be found. Looking changes nothing. */
export interface Inspection {
  /** At most `limit` documents beyond `after`, in the order of `_id`. A collection that is not there has none. */
  page(collection: string, limit: number, after?: Id): Promise<readonly Row[]>;
  /** The last numbers that sequences may have given, in order of their names. */
  sequences(): Promise<readonly (readonly [name: string, last: number])[]>;
  many(collection: string, ids: readonly Id[]): Promise<readonly Row[]>;
  /** The document of a row. Throws `Corrupt`. */
  read<T extends Doc>(row: Row, kind: Kind<T>): T;
  /** The declared indexes that are missing or different, in words. */
  wrongIndexes(kind: Pick<Declaration, "name" | "indexes">): Promise<readonly string[]>;
}

/** All that is stored, so that it can be moved. */
export interface Records extends Pick<Inspection, "page" | "sequences"> {
  /** In order of their names. */
  collections(): Promise<readonly string[]>;
  count(collection: string): Promise<number>;
  /** What a row holds, without what the engine adds; undefined if no engine can have written it under its id. */
  fields(row: Row): Fields | undefined;
  /** The greatest id of a collection. */
  last(collection: string): Promise<Id | undefined>;
  /**
   * Adds rows of any engine's fields, or damaged ones, in ascending order and beyond the last. If that is cut short, those that were
   * added are the first.
   */
  add(collection: string, rows: readonly Row[]): Promise<void>;
  setSequence(name: string, last: number): Promise<void>;
}

/** Something wrong with a store as a whole, in a sentence that says what to do. */
export interface Problem {
  readonly about: "identity" | "file" | "index" | "version" | "write-concern" | "oplog" | "clock" | "disk";
  readonly text: string;
}

/** The store of one service while no petstore has it open, or of one that others have open as well. */
export interface StoreAtRest extends Inspection {
  /** What is wrong with it as a whole. Takes long for a large file. */
  problems(): Promise<readonly Problem[]>;
  /** Whether no petstore has ever stored anything there. Never of a file. */
  isEmpty(): Promise<boolean>;
  /** Whether other processes work with it. Always false for a file, which can't be read then. */
  isInUse(): Promise<boolean>;
  /** The versions of the processes that work with it, as far as they say so. Undefined for who may not see others. */
  versions(): Promise<ReadonlySet<string> | undefined>;
  /** Drops the indexes of a collection that may be wrong. Opening the store builds them. */
  dropIndexes(kind: Pick<Declaration, "name" | "indexes">): Promise<void>;
  close(): Promise<void>;
}
