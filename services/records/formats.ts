/**
 * Formats of stored documents, by which two versions of the petstore run beside each other on the same data. A version that
 * brings a format declares how a document of the one before becomes one of it, and back. It reads both, and writes the one
 * before until it is told otherwise (`format-marks.ts`).
 */
import type { DocumentSchema } from "@petstore/store/document-schema";
import { type Collection, type Decide, type Doc, type Draft, type Indexes, put } from "@petstore/store/port";

/** What a schema says of the formats of its documents, each of which carries the number of its own. */
export interface Formats {
  /** The highest that this version knows. */
  readonly newest: number;
  /**
   * Present if this version brings that format. Pure. Indexed members stay as they are: what an index is to find in another
   * way needs a new member.
   */
  readonly change?: {
    readonly upgrade: (old: never) => object;
    readonly downgrade: (doc: never) => object;
  };
}
export interface Formatted {
  readonly formats?: Formats | undefined;
}

/** The lowest that this version reads, and in which it writes until it is told otherwise. */
export const oldestFormat = ({ newest, change }: Formats): number => (change ? newest - 1 : newest);

/** Returns what makes a stored document one of the newest format, but for its `format`, which stays that of what is stored. */
export const toNewest =
  ({ formats }: Formatted) =>
  <T>(doc: T): T => {
    const { format } = Object(doc) as { readonly format?: unknown };
    if (!formats?.change || format !== oldestFormat(formats)) return doc;
    return { ...formats.change.upgrade(doc as never), format } as T;
  };

interface Reading {
  readonly document?: DocumentSchema<unknown> | undefined;
  readonly shown?: ((doc: never) => unknown) | undefined;
  readonly noted?: ((doc: never) => unknown) | undefined;
}

/** The schema by which a store reads the documents of both formats. */
export function asStored<S extends Reading & Formatted>(schema: S): S {
  if (!schema.formats?.change) return schema;
  const { document, shown, noted }: Reading = schema;
  const newest = toNewest(schema);
  const fits = (value: unknown) => {
    try {
      return document?.(newest(value));
    } catch {
      return ""; // so damaged that it can't be made one of the newest format
    }
  };
  return {
    ...schema,
    document: document && fits,
    shown: shown && ((doc: never) => shown(newest(doc))),
    noted: noted && ((doc: never) => noted(newest(doc))),
  };
}

/** A document with the number of its format. */
export type Numbered = Doc & { readonly _id: number; readonly format: number };

/** The collection as if all its documents were of the newest format. `written` says in which one they are written. */
export function translated<T extends Numbered, I extends Indexes<T>, V>(
  collection: Collection<T, I, V>,
  formats: Formats,
  written: () => number,
): Collection<T, I, V> {
  const newest = toNewest({ formats });
  const asWritten = (doc: Draft<T>, format: number): Draft<T> => {
    const { newest: highest, change } = formats;
    return { ...((change && format < highest ? change.downgrade(doc as never) : doc) as Draft<T>), format };
  };
  const translate =
    <R>(decide: Decide<T, R>): Decide<T, R> =>
    (doc, rev) => {
      const decision = decide(newest(doc), rev);
      if (decision.action === "keep") return decision;
      // What a process has written that was told sooner stays in its format.
      return put(asWritten(decision.doc, Math.max(written(), doc?.format ?? 0)), decision.result);
    };
  return {
    ...collection,
    get: async (...call) => newest(await collection.get(...call)),
    getMany: async (...call) => (await collection.getMany(...call)).map(newest),
    list: async (...call) => (await collection.list(...call)).map(newest),
    listByPrefix: async (...call) => (await collection.listByPrefix(...call)).map(newest),
    update: (id, decide, options) => collection.update(id, translate(decide), options),
    remove: (id, isOver, options) => collection.remove(id, (doc) => isOver(newest(doc)), options),
  };
}
