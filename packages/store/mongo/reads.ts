/**
 * Reads by `_id`. All reads that are requested in one tick of the event loop, or while a query is under way, share one
 * query, in which each document is requested and decoded once. No caller joins a query that was sent before, because its
 * answer may be older than what that caller has seen. And what is known of documents from such reads, and from writes, without
 * another one.
 */
import { encode, type Fields, peek } from "../document/codec.ts";
import { createBatcher } from "../engine/batcher.ts";
import type { Doc, Id } from "../port.ts";
import { type Database, find, type Raw } from "./database.ts";
import type { Awaiting, ReadLimits } from "./deadline.ts";
import type { Stored } from "./operation-log.ts";
import { type Asker, together } from "./shared-query.ts";

/** Most reads in one query. */
const MAX_BATCH = 1_000;

export type PointReads<T extends Doc> = ReturnType<typeof pointReads<T>>;

/** An equality match on one `_id` needs no query plan; planning takes a quarter of MongoDB's time for a query. */
const oneOf = (ids: readonly Id[]) => (ids.length === 1 ? ids[0] : { $in: ids });

type Level = "majority" | "linearizable";

interface Asked<T extends Doc> extends Asker<Stored<T> | undefined> {
  readonly id: Id;
}

export function pointReads<T extends Doc>(database: Database, raw: Raw, known: Pick<Known<T>, "read" | "noteAbsent">) {
  const { hasSeveralMembers, inSession } = database;
  const byId = (ids: readonly Id[], options: Parameters<typeof find>[3]) =>
    find(database, raw.collectionName, { filter: { _id: oneOf(ids) }, batchSize: ids.length + 1 }, options);
  const fetch: Record<Level, (ids: readonly Id[], limits: ReadLimits) => Promise<Uint8Array[]>> = {
    majority: (ids, limits) => inSession((session) => byId(ids, { session, limits })),
    /** Needs no session: it sees every write that was answered before, to any process. */
    linearizable: (ids, limits) => byId(ids, { level: "linearizable", limits }),
  };

  /** Whose document it is, and how they are answered. Throws when that can't be read. */
  function open(bytes: Uint8Array): { id: Id; answer: (asked: Asked<T>) => void } {
    try {
      const document = known.read(bytes);
      return { id: document.doc._id, answer: ({ resolve }) => resolve(document) };
    } catch (error) {
      const { _id } = peek(bytes);
      if (_id === undefined) throw error;
      return { id: _id as Id, answer: ({ reject }) => reject(error) };
    }
  }

  const enter = createBatcher<Level, Pick<Asked<T>, "id" | "by">, Stored<T> | undefined>(
    together<Level, Asked<T>>(async (level, batch, limits) => {
      const waiting = Map.groupBy(batch, ({ id }) => id);
      for (const bytes of await fetch[level]([...waiting.keys()], limits)) {
        const { id, answer } = open(bytes);
        for (const asked of waiting.get(id) ?? []) answer(asked);
        waiting.delete(id);
      }
      for (const [id, asked] of waiting) {
        known.noteAbsent(id);
        for (const { resolve } of asked) resolve(undefined);
      }
    }),
    MAX_BATCH,
  );

  // A single member can't be deposed unnoticed, and a linearizable read on it takes long when nothing is written.
  return {
    /**
     * The document, read after this call for those who wait for it; rejects with what decoding it throws. `latest`: a
     * majority of the members confirms that it is the latest state.
     */
    read: (id: Id, by: readonly Awaiting[], latest = false): Promise<Stored<T> | undefined> =>
      enter(latest && hasSeveralMembers() ? "linearizable" : "majority", { id, by }),
  };
}

/** Bytes of BSON in each of the cache's two generations. */
const MAX_BYTES = 256 * 1024;
/** Overhead of one entry, in bytes. */
const ENTRY_BYTES = 64;

interface Entry<T extends Doc> {
  readonly bytes: number;
  /** Undefined when there is no such document. */
  readonly document: Stored<T> | undefined;
}

export type Known<T extends Doc> = ReturnType<typeof knownDocuments<T>>;

/**
 * A cache of what a process knows of the documents of a collection. Other processes write as well, so it only serves as
 * the start of a change: the guarded write confirms it, and a decision without a write is made again on a fresh read.
 */
export function knownDocuments<T extends Doc>(decode: (bytes: Uint8Array) => Stored<T>) {
  // When the young generation is full it becomes the old one, and the old one before it is dropped.
  let young = new Map<Id, Entry<T>>();
  let old = new Map<Id, Entry<T>>();
  let size = 0;
  /** Ids are assigned in ascending order, so an id above all that were seen is most likely new. */
  let highest = Number.POSITIVE_INFINITY;

  /** Forgets what is out of date, or may be. */
  function forget(id: Id): void {
    size -= young.get(id)?.bytes ?? 0;
    young.delete(id);
    old.delete(id);
  }

  function note(id: Id, length: number, document: Stored<T> | undefined): void {
    forget(id);
    const bytes = ENTRY_BYTES + length;
    size += bytes;
    young.set(id, { bytes, document });
    if (document && typeof id === "number" && (id > highest || highest === Number.POSITIVE_INFINITY)) highest = id;
    if (size < MAX_BYTES) return;
    old = young;
    young = new Map();
    size = 0;
  }

  return {
    /** The document, or its absence, if either is known. */
    base: (id: Id): Pick<Entry<T>, "document"> | undefined =>
      young.get(id) ?? old.get(id) ?? (typeof id === "number" && id > highest ? { document: undefined } : undefined),
    /** Decodes bytes that were just read. Throws `Corrupt`. */
    read(bytes: Uint8Array): Stored<T> {
      const document = decode(bytes);
      note(document.doc._id, bytes.length, document);
      return document;
    },
    noteAbsent: (id: Id) => note(id, 0, undefined),
    noteWritten: (id: Id, fields: Fields, document: Stored<T>) => note(id, encode(fields).length, document),
    forget,
  };
}
