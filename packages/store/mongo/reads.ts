/** Reads by `_id`: all that are asked for in one tick of the event loop travel as one query. */
import { idOf } from "../document/codec.ts";
import { createBatcher } from "../engine/batcher.ts";
import type { Id } from "../port.ts";
import { type Database, find, type Raw } from "./database.ts";

/** Reads in one query. */
const MAX_BATCH = 256;

/** How much a read has to see: all that this process has seen, or all that any process was answered. */
type Level = "majority" | "linearizable";

interface Waiting {
  readonly id: Id;
  readonly resolve: (bytes: Uint8Array | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export interface PointReads {
  /** The document's bytes as they are after this call. `latest`: proven to be so by a majority of the members. */
  read(id: Id, latest?: boolean): Promise<Uint8Array | undefined>;
}

export function pointReads(database: Database, raw: Raw): PointReads {
  function fetch(level: Level, ids: readonly Id[]): Promise<Uint8Array[]> {
    const [filter, batchSize] = [{ _id: { $in: ids } }, ids.length + 1];
    // Needs no session: it sees everything that anybody was answered before.
    if (level === "linearizable") return find(raw, filter, { readConcern: { level }, batchSize });
    return database.inSession((session) => find(raw, filter, { session, batchSize }));
  }

  async function answer(level: Level, asked: readonly Waiting[]): Promise<void> {
    try {
      const bytes = await fetch(level, [...new Set(asked.map(({ id }) => id))]);
      const found = new Map(bytes.map((one) => [idOf(one), one]));
      for (const { id, resolve } of asked) resolve(found.get(id));
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  }

  const ask = createBatcher<Level, Waiting>((level, asked) => {
    void answer(level, asked); // queries don't wait for one another
    return [];
  }, MAX_BATCH);

  return {
    read(id, latest = false) {
      const { promise, resolve, reject } = Promise.withResolvers<Uint8Array | undefined>();
      // One member can't be deposed unnoticed, and there a linearizable read takes long when nothing is written.
      ask(latest && database.hasSeveralMembers() ? "linearizable" : "majority", { id, resolve, reject });
      return promise;
    },
  };
}
