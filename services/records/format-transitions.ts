/** The mark of a collection, and the rules by which it changes: pure. */
import * as s from "@petstore/store/document-schema";
import { type Decide, type Infer, keep, put, schema } from "@petstore/store/port";
import { type Formats, oldestFormat } from "./formats.ts";

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
