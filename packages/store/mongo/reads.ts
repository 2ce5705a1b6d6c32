/** Reads by `_id`: all that are asked for in one tick of the event loop travel as one query. */
import DataLoader from "dataloader";
import { idOf } from "../document/codec.ts";
import type { Id } from "../port.ts";
import { type Database, find, type Raw } from "./database.ts";

/** Reads in one query. */
const MAX_BATCH = 256;

export interface PointReads {
  /** The document's bytes as they are after this call. `latest`: proven to be so by a majority of the members. */
  read(id: Id, latest?: boolean): Promise<Uint8Array | undefined>;
}

export function pointReads(database: Database, raw: Raw): PointReads {
  const majority = loader((ids) =>
    database.inSession((session) => find(raw, { _id: { $in: ids } }, { session, batchSize: ids.length + 1 })),
  );

  /** Needs no session: it sees everything that anybody was answered before. */
  const linearizable = loader((ids) => {
    const readConcern = { level: "linearizable" };
    return find(raw, { _id: { $in: ids } }, { readConcern, batchSize: ids.length + 1 });
  });

  // One member can't be deposed unnoticed, and there a linearizable read takes long when nothing is written.
  return {
    read: (id, latest = false) => (latest && database.hasSeveralMembers() ? linearizable : majority).load(id),
  };
}

/** Remembers nothing: what is asked for in the next tick is read anew. */
function loader(fetch: (ids: readonly Id[]) => Promise<Uint8Array[]>): DataLoader<Id, Uint8Array | undefined> {
  const load = async (ids: readonly Id[]) => {
    const found = new Map((await fetch([...new Set(ids)])).map((bytes) => [idOf(bytes), bytes]));
    return ids.map((id) => found.get(id));
  };
  return new DataLoader(load, { cache: false, maxBatchSize: MAX_BATCH, batchScheduleFn: setImmediate });
}
