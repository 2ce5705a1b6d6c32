/**
 * Reads by `_id`. All reads that are requested in one tick of the event loop, or while a query is under way, share one
 * query, in which each document is requested and decoded once. No caller joins a query that was sent before, because its
 * answer may be older than what that caller has seen.
 */
import { idOf } from "../document/codec.ts";
import { createBatcher } from "../engine/batcher.ts";
import type { Id } from "../port.ts";
import { type Database, find, type Raw } from "./database.ts";
import { withPatience } from "./deadline.ts";

/** Most reads in one query. */
const MAX_BATCH = 1_000;

export interface PointReads<S> {
  /**
   * The document, read after this call; rejects with what decoding it throws. `latest`: a majority of the members
   * confirms that it is the latest state.
   */
  read(id: Id, latest?: boolean): Promise<S | undefined>;
}

/** An equality match on one `_id` needs no query plan; planning takes a quarter of MongoDB's time for a query. */
const oneOf = (ids: readonly Id[]) => (ids.length === 1 ? ids[0] : { $in: ids });

type Level = "majority" | "linearizable";

interface Waiting<S> {
  readonly id: Id;
  readonly resolve: (document: S | undefined) => void;
  readonly reject: (error: unknown) => void;
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
  const fetch: Record<Level, (ids: readonly Id[]) => Promise<Uint8Array[]>> = {
    majority: (ids) => inSession((session) => byId(ids, { session })),
    /** Needs no session: it sees every write that was answered before, to any process. */
    linearizable: (ids) => byId(ids, { level: "linearizable" }),
  };

  async function send(level: Level, batch: readonly Waiting<S>[]): Promise<void> {
    const waiting = Map.groupBy(batch, ({ id }) => id);
    try {
      for (const bytes of await fetch[level]([...waiting.keys()])) {
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
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  const enter = createBatcher<Level, Waiting<S>>(async (level, batch) => {
    await withPatience(send(level, batch));
    return [];
  }, MAX_BATCH);

  // A single member can't be deposed unnoticed, and a linearizable read on it takes long when nothing is written.
  return {
    read(id, latest = false) {
      const { promise, resolve, reject } = Promise.withResolvers<S | undefined>();
      enter(latest && hasSeveralMembers() ? "linearizable" : "majority", { id, resolve, reject });
      return promise;
    },
  };
}
