/**
 * Search by name. A visible record carries its name without case, and an index finds those that begin alike. Records that were
 * stored before there was a search get theirs from a worker. Until all have it nothing is searched, for some would be missing.
 */
import { background, type CallContext } from "@petstore/rpc/call";
import * as s from "@petstore/store/document-schema";
import {
  type Collection,
  type Decide,
  type Draft,
  type Indexes,
  type Infer,
  keep,
  type ListQuery,
  type PrefixQuery,
  put,
  schema,
} from "@petstore/store/port";
import { DomainError } from "./errors.ts";
import type { Deps, Worker } from "./module.ts";
import { documentAfter, recordSchema, storedWith } from "./record.ts";
import { type WalkOptions, walk } from "./walk.ts";

/** A record that can be found by its name. */
export const namedSchema = s.object({
  ...recordSchema.fields,
  /** Present while the record is visible. */
  foldedName: s.string.optional,
});
export type NamedRecord = Infer<typeof namedSchema>;
export type NameOf<T extends NamedRecord> = (doc: Draft<T>) => string;

export const foldedNameOf = <T extends NamedRecord>(doc: Draft<T>, nameOf: NameOf<T>): string | undefined =>
  doc.visible && foldCase(nameOf(doc));

/** Wraps a collection so that every write of a record sets `foldedName`. */
export function withFoldedName<T extends NamedRecord, I extends Indexes<T>, V>(
  collection: Collection<T, I, V>,
  nameOf: NameOf<T>,
): Collection<T, I, V> {
  const folded = (doc: Draft<T>) => ({ foldedName: foldedNameOf(doc, nameOf) });
  return { ...collection, update: (id, decide, options) => collection.update(id, storedWith(decide, folded), options) };
}

const markSchema = s.object({
  _id: s.string,
  rev: s.int,
  /** When the records are to be gone through once more. Absent once that is done. */
  again: s.int.optional,
});
type MarkDoc = Infer<typeof markSchema>;
export const MARKS = schema<MarkDoc>()("marks", {}, markSchema);

/** The only document. It is there if every record has its folded name. */
const FOLDED_NAMES = "folded names";
/** It, once nothing is left to do. */
export const allFolded: MarkDoc = { _id: FOLDED_NAMES, rev: 1 };
/**
 * In a rolling upgrade, processes that know of no folded names still change names after the first walk. The second one begins so
 * many milliseconds later, when none of them runs any more.
 */
const AGAIN_MS = 24 * 3_600_000;
/** The worker looks this often whether there is something to do, in milliseconds. */
const INTERVAL_MS = 10_000;
/** Records that a search goes through itself, so that a petstore with few can be searched at once. */
const FEW = 100;

/** A collection of records, with indexes by `visible` and by `foldedName`. */
interface NamedRecords<T extends NamedRecord> {
  list(query: ListQuery<{ readonly visible: true }>, callContext: CallContext): Promise<T[]>;
  listByPrefix(query: PrefixQuery<"foldedName">, callContext: CallContext): Promise<T[]>;
  update(id: number, decide: Decide<T, void>, callContext: CallContext): Promise<void>;
}

export type NameSearch<T extends NamedRecord> = ReturnType<typeof createNameSearch<T>>;

/** Where a page of records by name begins, and how far it goes. */
export interface NameStart {
  readonly prefix: string;
  readonly after: { readonly key: string; readonly _id: number } | undefined;
  readonly limit: number;
}

/** `records` are those of `withFoldedName`. */
export function createNameSearch<T extends NamedRecord>(
  name: string,
  records: NamedRecords<T>,
  nameOf: NameOf<T>,
  marks: Collection<MarkDoc>,
  deps: Pick<Deps, "clock" | "random" | "sleep">,
) {
  /** As it was read or written last. */
  let mark: MarkDoc | undefined;

  const lacks = (doc: T) => doc.foldedName !== foldedNameOf(doc, nameOf);
  const fold: Decide<T, void> = (doc) => (doc && lacks(doc) ? put(doc, undefined) : keep(undefined));

  /** Gives visible records their folded names. Resolves to how many lacked it. */
  function foldAll(options: WalkOptions): Promise<number> {
    const begun = deps.clock();
    return walk(
      {
        list: (after, limit, callContext) =>
          records.list({ where: { visible: true }, after, limit, order: "asc" }, callContext),
        isOld: lacks,
        rewrite: ({ _id }, callContext) => records.update(_id, fold, callContext),
        async passed(last, callContext) {
          if (last === undefined) mark = await marks.update(FOLDED_NAMES, documentAfter(walked(begun)), callContext);
        },
      },
      options,
      deps,
    );
  }

  return {
    /** The visible records whose folded name begins with `prefix`, in the order of (folded name, id). Throws UNAVAILABLE. */
    async list(start: NameStart, callContext: CallContext): Promise<T[]> {
      mark ??= await marks.get(FOLDED_NAMES, callContext);
      if (!mark) await foldAll({ limit: FEW, most: 1, call: () => callContext });
      if (!mark) {
        const message =
          "Names are still being made ready for search after an upgrade. Try again later, or list without name.";
        throw new DomainError("UNAVAILABLE", message);
      }
      return records.listByPrefix({ ...start, field: "foldedName" }, callContext);
    },
    worker: {
      name,
      everyMs: INTERVAL_MS,
      async run(limit, stop) {
        mark ??= await marks.get(FOLDED_NAMES, background(deps, "names"));
        const isDue = !mark || (mark.again !== undefined && deps.clock() >= mark.again);
        return isDue ? foldAll({ limit, stop, call: () => background(deps, "names") }) : 0;
      },
    } satisfies Worker as Worker,
  };
}

/** Notes a walk that came to its end. The first one is followed by another. */
const walked =
  (begun: number): Decide<MarkDoc, void> =>
  (doc) => {
    if (!doc) return put({ _id: FOLDED_NAMES, again: begun + AGAIN_MS }, undefined);
    const isSecond = doc.again !== undefined && begun >= doc.again;
    return isSecond ? put({ _id: FOLDED_NAMES }, undefined) : keep(undefined);
  };

/**
 * Texts without the case of their letters: two are the same here if JavaScript's regular expressions with the flags `iu` take
 * them for the same (Unicode's simple case folding). So K, k and the kelvin sign are one letter, and so are ß and ẞ, but not
 * ß and ss. A text keeps its number of characters.
 *
 * How an assigned character folds never changes. A Node that knows a newer Unicode may fold characters that were not assigned
 * before: a record that has one in its name is found by it once it is written again.
 */
export const foldCase = (text: string): string => Array.from(text, foldCharacter).join("");

/** Characters that don't fold as their upper case does. */
const OTHERS: ReadonlyMap<string, string> = new Map([
  // Its upper case is that of i, which it is not.
  ["\u0131", "\u0131"],
  // Their upper case is several characters, the same as that of another one.
  ["\u1fd3", "\u0390"],
  ["\u1fe3", "\u03b0"],
  ["\ufb05", "\ufb06"],
]);

function foldCharacter(character: string): string {
  const other = OTHERS.get(character);
  if (other !== undefined) return other;
  const upper = character.toUpperCase();
  const lower = (isOne(upper) ? upper : character).toLowerCase();
  return isOne(lower) ? lower : character;
}

const isOne = (text: string): boolean => [...text].length === 1;
