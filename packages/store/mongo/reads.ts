/**
 * Reads by `_id`. All reads that are requested in one tick of the event loop, or while a query is under way, share one
 * query, in which each document is requested and decoded once. No caller joins a query that was sent before, because its
 * answer may be older than what that caller has seen.
 */
import { peek } from "../document/codec.ts";
import { createBatcher } from "../engine/batcher.ts";
import type { Doc, Id } from "../port.ts";
import { type Database, find, type Raw } from "./database.ts";
import type { Awaiting, ReadLimits } from "./deadline.ts";
import type { Known } from "./known.ts";
import type { Stored } from "./operation-log.ts";
import { type Asker, together } from "./shared-query.ts";

/** Most reads in one query. */
const MAX_BATCH = 1_000;

export type PointReads<T extends Doc> = ReturnType<typeof pointReads<T>>;

/** An equality match on one `_id` needs no query plan; planning takes a quarter of MongoDB's time for a query. */
const oneOf = (ids: readonly Id[]) => (ids.length === 1 ? ids[0] : { $in: ids });

type Level = "majority" | "linearizable";

interface Asked<T extends Doc> extends Asker {
  readonly id: Id;
  readonly resolve: (document: Stored<T> | undefined) => void;
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

  const enter = createBatcher(
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
    read(id: Id, by: readonly Awaiting[], latest = false): Promise<Stored<T> | undefined> {
      const { promise, resolve, reject } = Promise.withResolvers<Stored<T> | undefined>();
      enter(latest && hasSeveralMembers() ? "linearizable" : "majority", { id, by, resolve, reject });
      return promise;
    },
  };
}
