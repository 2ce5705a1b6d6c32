/**
 * In which format each collection of a service is written. Without a mark that is the format of the version before this one;
 * `npm run data -- migrate up` raises it once no older version runs any more. A process hears of that within seconds, and then
 * a worker rewrites what is old. A version that does not know the format of a mark neither starts nor goes on.
 */
import { background } from "@petstore/rpc/call";
import * as s from "@petstore/store/document-schema";
import {
  type Collection,
  type Decide,
  type Doc,
  type Indexes,
  type Infer,
  keep,
  put,
  type Schema,
  type Store,
  schema,
  Unavailable,
  UnsupportedFormat,
} from "@petstore/store/port";
import type { Deps } from "./deps.ts";
import { asStored, type Formats, type Formatted, type Numbered, oldestFormat, translated } from "./formats.ts";
import type { Worker } from "./module.ts";
import { documentAfter } from "./record.ts";
import { walk } from "./walk.ts";

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

/** Pause between two looks at the marks, in milliseconds. */
const INTERVAL_MS = 2_000;
/** By then all processes have heard of a raised mark, and finished what they were writing in the format before. */
const HEARD_MS = 10_000;
const RETRY_MS = 1_000;

interface Options extends Pick<Deps, "clock" | "random" | "sleep"> {
  readonly service: string;
  /** That of the petstore. */
  readonly version: string;
}

/**
 * Wraps the store of a service. Opening a collection rejects with `UnsupportedFormat` if this version does not know its format;
 * so does the worker when it hears of that later.
 */
export function withFormats(store: Store, options: Options) {
  const followed: (Omit<Follower, "rewrite"> & Pick<Worker, "run">)[] = [];
  const opened = new Map<object, Promise<unknown>>();

  async function open<T extends Numbered, I extends Indexes<T>, V>(
    declared: Schema<T, I, V> & Formatted,
  ): Promise<Collection<T, I, V>> {
    const { name, formats } = declared;
    const collection = await store.collection<T, I, V>(asStored(declared));
    if (!formats) return collection;
    const follower = follow(name, formats, await store.collection(FORMAT_MARKS), options);
    await patiently(follower.begin, options);
    const records = formats.change ? translated(collection, formats, follower.written) : collection;
    followed.push({ ...follower, run: (limit, stop) => follower.rewrite(records, limit, stop) });
    return records;
  }

  const formatted: Store = {
    ...store,
    collection<T extends Doc, const I extends Indexes<T>, V>(declared: Schema<T, I, V>) {
      const known = opened.get(declared) ?? open(declared as never);
      opened.set(declared, known);
      return known as Promise<Collection<T, I, V>>;
    },
  };
  const worker: Worker = {
    name: `${options.service}.formats`,
    everyMs: INTERVAL_MS,
    async run(limit, stop) {
      let count = 0;
      for (const one of followed) {
        await one.read();
        count += await one.run(limit, stop);
      }
      return count;
    },
  };
  return {
    store: formatted,
    worker,
    /** Has all collections written in the newest format, and what is old rewritten. */
    async raise(): Promise<void> {
      for (const { raise } of followed) await raise();
    },
  };
}

type Follower = ReturnType<typeof follow>;

/** Follows the mark of a collection. */
function follow(
  name: string,
  formats: Formats,
  marks: Collection<FormatMark>,
  { service, version, clock, random, sleep }: Options,
) {
  const { newest } = formats;
  const call = () => background({ clock, random }, "formats");
  let mark: FormatMark | undefined;
  let heardAt = 0;

  function note(found: FormatMark | undefined): void {
    const problem = problemOf(found, { service, name, version, formats });
    if (problem !== undefined) throw new UnsupportedFormat(problem);
    if (found?.format !== mark?.format) heardAt = clock();
    mark = found;
  }

  const read = async (): Promise<void> => note(await marks.get(name, call()));

  return {
    written: () => writtenFormat(formats, mark),
    read,

    /** Has a mark from the first start on, by which a later version sees what it finds. */
    async begin(): Promise<void> {
      await read();
      if (!mark) note(await marks.update(name, documentAfter(first(name, oldestFormat(formats), version)), call()));
    },

    async raise(): Promise<void> {
      if (formats.change) note(await marks.update(name, documentAfter(raised(name, newest, version)), call()));
    },

    async rewrite<T extends Numbered, I extends Indexes<T>>(
      records: Collection<T, I>,
      limit: number,
      stop: AbortSignal | undefined,
    ): Promise<number> {
      if (!mark || mark.done || mark.format < newest || clock() < heardAt + HEARD_MS) return 0;
      const again: Decide<T, void> = (doc) => (doc && doc.format < newest ? put(doc, undefined) : keep(undefined));
      return walk<T>(
        {
          list: (after, most, callContext) => records.list({ after, limit: most, order: "asc" }, callContext),
          isOld: ({ format }) => format < newest,
          rewrite: ({ _id }, callContext) => records.update(_id, again, callContext),
          async passed(last, callContext) {
            note(await marks.update(name, documentAfter(passed(newest, last)), callContext));
          },
        },
        { limit, call, after: mark.after, stop },
        { clock, sleep },
      );
    },
  };
}

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

/** A start waits for the store, however long. */
async function patiently(work: () => Promise<void>, { sleep }: Options): Promise<void> {
  for (;;)
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      await sleep(RETRY_MS);
    }
}

const first =
  (_id: string, format: number, by: string): Decide<FormatMark, void> =>
  (doc) =>
    doc ? keep(undefined) : put({ _id, format, by, done: true }, undefined);

/** Raises the mark. One that is raised so far stays, unless all was gone through: then that begins anew. */
const raised =
  (_id: string, format: number, by: string): Decide<FormatMark, void> =>
  (doc) =>
    doc && (doc.format > format || (doc.format === format && !doc.done))
      ? keep(undefined)
      : put({ _id, format, by }, undefined);

/** Notes how far the worker has come; undefined: to the end. Other processes may have come further. */
const passed =
  (format: number, last: number | undefined): Decide<FormatMark, void> =>
  (doc) => {
    if (!doc || doc.format !== format || doc.done) return keep(undefined);
    const { after: _, ...rest } = doc;
    if (last === undefined) return put({ ...rest, done: true }, undefined);
    return put({ ...doc, after: Math.max(last, doc.after ?? 0) }, undefined);
  };
