/** A disk in memory that outlives its process, reports every write, and makes every access take a turn. */

import type { Collection, Doc, Id, Indexes, Schema, Store } from "@petstore/store/port";
import { deserialize } from "bson";
import type { MemoryData } from "../../packages/store/memory/memory.ts";

export type Stored = Doc & Readonly<Record<string, unknown>>;
export type OnWrite = (collection: string, after: Stored, before: Stored | undefined) => void;

class WatchedCollection extends Map<Id, Uint8Array> {
  readonly #onWrite: (after: Uint8Array, before: Uint8Array | undefined) => void;
  constructor(onWrite: (after: Uint8Array, before: Uint8Array | undefined) => void) {
    super();
    this.#onWrite = onWrite;
  }
  override set(id: Id, bytes: Uint8Array): this {
    const before = this.get(id);
    super.set(id, bytes);
    this.#onWrite(bytes, before);
    return this;
  }
}

/** The document of bytes that were written: each write is read once, however often it is told of. */
const read = new WeakMap<Uint8Array, Stored>();
function docOf(bytes: Uint8Array): Stored {
  const known = read.get(bytes);
  if (known) return known;
  const doc = deserialize(bytes) as Stored;
  read.set(bytes, doc);
  return doc;
}

class WatchedCollections extends Map<string, Map<Id, Uint8Array>> {
  readonly #onWrite: OnWrite;
  constructor(onWrite: OnWrite) {
    super();
    this.#onWrite = onWrite;
  }
  override get(name: string): Map<Id, Uint8Array> {
    const known = super.get(name);
    if (known) return known;
    const fresh = new WatchedCollection((after, before) => this.#onWrite(name, docOf(after), before && docOf(before)));
    super.set(name, fresh);
    return fresh;
  }
}

export const createDisk = (onWrite: OnWrite): MemoryData => ({
  collections: new WatchedCollections(onWrite),
  sequences: new Map(),
  changes: new Map(),
});

/** Replaces what a disk holds. Nobody is told of it. */
export function fill(disk: MemoryData, copy: MemoryData): void {
  for (const [name, documents] of disk.collections) {
    documents.clear();
    for (const [id, bytes] of copy.collections.get(name) ?? []) Map.prototype.set.call(documents, id, bytes);
  }
  for (const [name, entries] of disk.changes) entries.splice(0, entries.length, ...(copy.changes.get(name) ?? []));
  disk.sequences.clear();
  for (const [name, last] of copy.sequences) disk.sequences.set(name, last);
}

/**
 * Takes ids ahead, as a process does on MongoDB: `ahead` says how many beyond the one that is needed. A process that dies
 * loses those that it has at hand.
 */
export function idsAhead(store: Store, ahead: () => number): Store {
  const atHand = new Map<string, number[]>();
  return {
    ...store,
    async nextId(sequence, options = {}) {
      const ids = atHand.get(sequence)?.filter((id) => id > (options.above ?? 0)) ?? [];
      atHand.set(sequence, ids);
      const next = ids.shift();
      if (next !== undefined) return next;
      const id = await store.nextId(sequence, options);
      for (let more = ahead(); more > 0; more--) atHand.get(sequence)?.push(await store.nextId(sequence, options));
      return id;
    },
  };
}

/**
 * Takes a step before every access, and another after a write, because a process may die between the write and its answer.
 * `delay` is the time that an access needs to get there, and its answer to get back; other accesses go on meanwhile.
 */
export function inSteps(store: Store, step: (label: string) => Promise<void>, delay: () => Promise<void>): Store {
  const read = async <R>(label: string, access: () => Promise<R>): Promise<R> => {
    await step(`read ${label}`);
    await delay();
    const result = await access();
    await delay();
    return result;
  };
  const write = async <R>(label: string, access: () => Promise<R>): Promise<R> => {
    await step(`write ${label}`);
    await delay();
    const result = await access();
    await step(`wrote ${label}`);
    await delay();
    return result;
  };
  return {
    async collection<T extends Doc, const I extends Indexes<T>, V>(
      schema: Schema<T, I, V>,
    ): Promise<Collection<T, I, V>> {
      const inner = await store.collection(schema);
      const { name } = schema;
      return {
        get: (...args) => read(name, () => inner.get(...args)),
        getMany: (...args) => read(name, () => inner.getMany(...args)),
        list: (...args) => read(name, () => inner.list(...args)),
        listByPrefix: (...args) => read(name, () => inner.listByPrefix(...args)),
        update: (...args) => write(name, () => inner.update(...args)),
        remove: (...args) => write(name, () => inner.remove(...args)),
        changes: (options) => read(name, () => inner.changes(options)),
        forgetChanges: (...args) => write(name, () => inner.forgetChanges(...args)),
      };
    },
    nextId: (...args) => write("sequence", () => store.nextId(...args)),
    ping: (options) => store.ping(options),
    close: () => store.close(),
  };
}
