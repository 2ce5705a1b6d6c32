/**
 * What all engines do before a call, and when collections are opened: admission control limits the calls that wait for the store. Beyond the limits a call is
 * refused at once and certainly without effect.
 *
 * A call that has begun to change something is not refused any more, because its caller would take that for "nothing was
 * done". Such a call is recognised by the `progress` in its options, which all its steps share. It waits for one step at a
 * time, so the limits on first steps also bound the later ones.
 */
import { isDeepStrictEqual } from "node:util";
import { checkId } from "../document/codec.ts";
import {
  type CallOptions,
  type Collection,
  type Doc,
  type Id,
  type Indexes,
  type NextIdOptions,
  Overloaded,
  type Schema,
} from "../port.ts";
import type { Declaration } from "./queries.ts";

/** Most changes of one document that wait at a time. */
export const MAX_PER_DOCUMENT = 2_000;
/** Most calls of all kinds that wait at a time. */
export const MAX_IN_ALL = 10_000;

/** Counts what waits for each document of a collection. */
export type Queues = Map<Id, number>;

export type Admission = ReturnType<typeof createAdmission>;

export function createAdmission() {
  let all = 0;
  const hasBegun = (options: CallOptions | undefined) => options?.progress?.hasBegun === true;

  async function counted<R>(options: CallOptions | undefined, call: () => Promise<R>): Promise<R> {
    if (all >= MAX_IN_ALL && !hasBegun(options)) throw new Overloaded("the store");
    all++;
    try {
      return await call();
    } finally {
      all--;
    }
  }

  return {
    read: counted,
    /** Runs a call that may change a document. */
    change: <R>(queues: Queues, id: Id, options: CallOptions | undefined, call: () => Promise<R>): Promise<R> =>
      counted(options, async () => {
        const waiting = queues.get(id) ?? 0;
        if (waiting >= MAX_PER_DOCUMENT && !hasBegun(options)) throw new Overloaded("one record");
        if (options?.progress) options.progress.hasBegun = true;
        queues.set(id, waiting + 1);
        try {
          return await call();
        } finally {
          const left = (queues.get(id) ?? 1) - 1;
          if (left > 0) queues.set(id, left);
          else queues.delete(id);
        }
      }),
  };
}

/** The collections of a store. Each is opened once, with one schema. */
export function createCollections(open: (declaration: Declaration) => Promise<unknown>) {
  const opened = new Map<string, { declaration: Declaration; collection: Promise<unknown> }>();
  return <T extends Doc, const I extends Indexes<T>, V>(schema: Schema<T, I, V>) => {
    const { name, indexes, document, shown, tracked, noted } = schema;
    const declaration: Declaration = { name, indexes, document, shown, tracked, noted };
    const known = opened.get(name) ?? { declaration, collection: open(declaration) };
    opened.set(name, known);
    if (isDeepStrictEqual(known.declaration, declaration)) return known.collection as Promise<Collection<T, I, V>>;
    return Promise.reject(new TypeError(`The collection ${name} is already open with another schema.`));
  };
}

/** Throws a TypeError for what names no sequence, and for a number that none can go on above. */
export function checkNextId(sequence: string, { above = 0 }: NextIdOptions = {}): void {
  checkId(sequence);
  if (Number.isSafeInteger(above) && Number.isSafeInteger(above + 1)) return;
  throw new TypeError(`${sequence} can't go on above ${above}: use a safe integer that another one follows.`);
}
