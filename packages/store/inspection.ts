/**
 * What is stored, as it is, for programs that look for damage: the port leaves out what it can't read, and builds what is
 * missing. Looking changes nothing.
 */
import { decode } from "./document/codec.ts";
import type { Declaration } from "./engine/indexes.ts";
import { Corrupt, type Doc, type DocumentSchema, type Id } from "./port.ts";

/** A stored document, which may be damaged. */
export interface Row {
  readonly _id: Id;
  readonly doc: Uint8Array;
  /** The fields by which lists find the document, where the engine keeps them beside it. */
  readonly indexed?: Readonly<Record<string, unknown>> | undefined;
}

/** Of a schema, what an inspection needs. Any schema of the port will do. */
export type Kind<T> = Pick<Declaration, "name" | "indexes"> & { readonly document?: DocumentSchema<T> | undefined };

export interface Inspection {
  /** At most `limit` documents beyond `after`, in the order of `_id`. A collection that is not there has none. */
  page(collection: string, limit: number, after?: Id): Promise<readonly Row[]>;
  many(collection: string, ids: readonly Id[]): Promise<readonly Row[]>;
  /** The document of a row. Throws `Corrupt`. */
  read<T extends Doc>(row: Row, kind: Kind<T>): T;
  /** The last number that a sequence may have given, 0 if there is none. */
  last(sequence: string): Promise<number>;
  /** The declared indexes that are missing or different, in words. */
  wrongIndexes(kind: Pick<Declaration, "name" | "indexes">): Promise<readonly string[]>;
  close(): Promise<void>;
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
  /** Drops the indexes of a collection that may be wrong. Opening the store builds them. */
  dropIndexes(kind: Pick<Declaration, "name" | "indexes">): Promise<void>;
}

/** The document of a row of the embedded engine. Throws `Corrupt`. */
export function readRow<T extends Doc>({ _id, doc: bytes }: Row, kind: Pick<Kind<T>, "name" | "document">): T {
  const doc = decode<T>(bytes, kind);
  if (doc._id === _id) return doc;
  throw new Corrupt(`Document ${_id} of ${kind.name} has the _id ${doc._id}: restore a backup.`, {
    collection: kind.name,
  });
}
