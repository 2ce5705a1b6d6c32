/**
 * Formats of stored documents, by which two versions of the petstore run beside each other on the same data. A version that
 * brings a format declares how a document of the one before becomes one of it, and back. It reads both, and writes the one
 * before until it is told otherwise by a mark, which `format-marks.ts` follows.
 */
import type { DocumentSchema } from "@petstore/store/document-schema";
import * as s from "@petstore/store/document-schema";
import {
  type Collection,
  type Decide,
  type Doc,
  type Draft,
  type Indexes,
  type Infer,
  keep,
  put,
  schema,
} from "@petstore/store/port";

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

/** The mark of a collection, by which all processes know in which format it is written. */
const markSchema = s.object({
  /** The name of the collection. */
  _id: s.string,
  rev: s.int,
  /** In which its documents are written. */
  format: s.int,
  /** The version of the petstore that raised it. */
  by: s.string,
  /** The worker has come to this document. */
  after: s.int.optional,
  /** The worker has come to the end. */
  done: s.literal([true]).optional,
});
export type FormatMark = Infer<typeof markSchema>;
export const FORMAT_MARKS = schema<FormatMark>()("formats", {}, markSchema);

export const writtenFormat = (formats: Formats, mark: FormatMark | undefined): number =>
  mark?.format ?? oldestFormat(formats);

interface Known {
  readonly service: string;
  readonly name: string;
  /** That of this petstore. */
  readonly version: string;
  readonly formats: Formats;
}

/** Why this version can't work with the collection, and what to do. */
export function problemOf(
  mark: FormatMark | undefined,
  { service, name, version, formats }: Known,
): string | undefined {
  if (!mark) return undefined;
  const raised = `${mark.by} of the petstore has raised the format of ${service}'s ${name} to ${mark.format} (npm run data -- migrate up)`;
  if (mark.format > formats.newest)
    return `${raised}, and this is ${version}, which knows ${formats.newest} at most: start ${mark.by}, or restore the backup from before.`;
  const oldest = oldestFormat(formats);
  if (mark.format < oldest)
    return `${service}'s ${name} are written in format ${mark.format}, and ${version} reads none below ${oldest}: start the version before ${version}, and give npm run data -- migrate up there.`;
  // Some documents are still of the format before, which this version does not read.
  if (mark.format === oldest && !mark.done)
    return `${raised}, which has not come to its end, and ${version} reads no older format: start ${mark.by}, and give that command again.`;
  return undefined;
}

/** The mark that a collection has from the first start on. */
export const first =
  (_id: string, format: number, by: string): Decide<FormatMark, void> =>
  (doc) =>
    doc ? keep(undefined) : put({ _id, format, by, done: true }, undefined);

/** Raises the mark. One that is raised so far stays, unless all was gone through: then that begins anew. */
export const raised =
  (_id: string, format: number, by: string): Decide<FormatMark, void> =>
  (doc) =>
    doc && (doc.format > format || (doc.format === format && !doc.done))
      ? keep(undefined)
      : put({ _id, format, by }, undefined);

/** Notes how far the worker has come; undefined: to the end. Other processes may have come further. */
export const passed =
  (format: number, last: number | undefined): Decide<FormatMark, void> =>
  (doc) => {
    if (!doc || doc.format !== format || doc.done) return keep(undefined);
    const { after: _, ...rest } = doc;
    if (last === undefined) return put({ ...rest, done: true }, undefined);
    return put({ ...doc, after: Math.max(last, doc.after ?? 0) }, undefined);
  };
