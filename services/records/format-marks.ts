/**
 * In which format each collection of a service is written. Without a mark that is the format of the version before this one;
 * `npm run data -- migrate up` raises it once no older version runs any more. A process hears of that within seconds, and then
 * a worker rewrites what is old. A version that does not know the format of a mark neither starts nor goes on.
 */
import { background } from "@petstore/rpc/call";
import {
  type Collection,
  type Decide,
  type Doc,
  type Indexes,
  keep,
  put,
  type Schema,
  type Store,
  Unavailable,
  UnsupportedFormat,
} from "@petstore/store/port";
import {
  asStored,
  FORMAT_MARKS,
  type FormatMark,
  type Formats,
  type Formatted,
  first,
  type Numbered,
  oldestFormat,
  passed,
  problemOf,
  raised,
  translated,
  writtenFormat,
} from "./formats.ts";
import type { Deps, Worker } from "./module.ts";
import { documentAfter } from "./record.ts";
import { walk } from "./walk.ts";

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
    if (mark && found?.rev === mark.rev) return;
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
