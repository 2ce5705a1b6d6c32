/** Reads by `_id`: all that are asked for in one turn of the event loop travel as one query. */
import { idOf } from "../document/codec.ts";
import type { Id } from "../port.ts";
import { type Database, find, type Raw } from "./database.ts";

/** Ids in one query. */
const BATCH = 256;

type Waiting = PromiseWithResolvers<Uint8Array | undefined>;

export interface PointReads {
  /** The document's bytes as they are after this call. `latest`: proven to be so by a majority of the members. */
  read(id: Id, latest?: boolean): Promise<Uint8Array | undefined>;
}

export function pointReads(database: Database, raw: Raw): PointReads {
  const reads = { majority: turns(majority), latest: turns(linearizable) };

  function majority(ids: readonly Id[]) {
    return database.inSession((session) => find(raw, { _id: { $in: ids } }, { session, batchSize: ids.length + 1 }));
  }

  /** Needs no session: it sees everything that anybody was answered before. */
  function linearizable(ids: readonly Id[]) {
    const readConcern = { level: "linearizable" };
    return find(raw, { _id: { $in: ids } }, { readConcern, batchSize: ids.length + 1 });
  }

  // One member can't be deposed behind our back, and there a linearizable read takes long when nothing is written.
  return {
    read: (id, latest = false) => (latest && database.hasSeveralMembers() ? reads.latest(id) : reads.majority(id)),
  };
}

function turns(fetch: (ids: readonly Id[]) => Promise<Uint8Array[]>) {
  let waiting = new Map<Id, Waiting>();

  function flush(): void {
    const all = [...waiting];
    waiting = new Map();
    for (let i = 0; i < all.length; i += BATCH) void answer(all.slice(i, i + BATCH));
  }

  async function answer(asked: readonly (readonly [Id, Waiting])[]): Promise<void> {
    try {
      const found = new Map((await fetch(asked.map(([id]) => id))).map((bytes) => [idOf(bytes), bytes]));
      for (const [id, { resolve }] of asked) resolve(found.get(id));
    } catch (error) {
      for (const [, { reject }] of asked) reject(error);
    }
  }

  return (id: Id): Promise<Uint8Array | undefined> => {
    if (waiting.size === 0) setImmediate(flush);
    const known = waiting.get(id) ?? Promise.withResolvers<Uint8Array | undefined>();
    waiting.set(id, known);
    return known.promise;
  };
}
