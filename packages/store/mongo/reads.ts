/**
 * Reads by `_id`. All reads that are requested in one tick of the event loop, or while a query is under way, share one
 * query, in which each document is requested and decoded once. No caller joins a query that was sent before, because its
 * answer may be older than what that caller has seen.
 */
import { idOf } from "../document/codec.ts";
import { createBatcher } from "../engine/batcher.ts";
import type { Id } from "../port.ts";
import { type Database, find, type Raw } from "./database.ts";
import type { Awaiting, ReadLimits } from "./deadline.ts";
import { type Asker, together } from "./shared-query.ts";

/** Most reads in one query. */
const MAX_BATCH = 1_000;

export interface PointReads<S> {
  /**
   * The document, read after this call for those who wait for it; rejects with what decoding it throws. `latest`: a majority
   * of the members confirms that it is the latest state.
   */
  read(id: Id, by: readonly Awaiting[], latest?: boolean): Promise<S | undefined>;
}

/** An equality match on one `_id` needs no query plan; planning takes a quarter of MongoDB's time for a query. */
const oneOf = (ids: readonly Id[]) => (ids.length === 1 ? ids[0] : { $in: ids });

type Level = "majority" | "linearizable";

interface Asked<S> extends Asker {
  readonly id: Id;
  readonly resolve: (document: S | undefined) => void;
}

export function pointReads<S>(
  database: Database,
  raw: Raw,
  known: {
    /** Decodes what was read. */
    read(id: Id, bytes: Uint8Array): S;
    noteAbsent(id: Id): void;
  },
): PointReads<S> {
  const { hasSeveralMembers, inSession } = database;
  const byId = (ids: readonly Id[], options: Parameters<typeof find>[3]) =>
    find(database, raw.collectionName, { filter: { _id: oneOf(ids) }, batchSize: ids.length + 1 }, options);
  const fetch: Record<Level, (ids: readonly Id[], limits: ReadLimits) => Promise<Uint8Array[]>> = {
    majority: (ids, limits) => inSession((session) => byId(ids, { session, limits })),
    /** Needs no session: it sees every write that was answered before, to any process. */
    linearizable: (ids, limits) => byId(ids, { level: "linearizable", limits }),
  };

  const enter = createBatcher(
    together<Level, Asked<S>>(async (level, batch, limits) => {
      const waiting = Map.groupBy(batch, ({ id }) => id);
      for (const bytes of await fetch[level]([...waiting.keys()], limits)) {
        const id = idOf(bytes) as Id;
        const asked = waiting.get(id) ?? [];
        waiting.delete(id);
        try {
          const document = known.read(id, bytes);
          for (const { resolve } of asked) resolve(document);
        } catch (error) {
          for (const { reject } of asked) reject(error);
        }
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
    read(id, by, latest = false) {
      const { promise, resolve, reject } = Promise.withResolvers<S | undefined>();
      enter(latest && hasSeveralMembers() ? "linearizable" : "majority", { id, by, resolve, reject });
      return promise;
    },
  };
}
