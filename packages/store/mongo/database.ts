/**
 * The database as the rest of the engine sees it: bytes by `_id`, every call causally after what the process has seen or
 * written.
 */
import { type ClientSession, type Collection, type DbOptions, type MongoClient, ReadConcern } from "mongodb";
import type { Fields } from "../document/codec.ts";
import type { Id } from "../port.ts";
import { type ReadLimits, TIMEOUT_MS, withTimeout } from "./deadline.ts";
import { nameOf, readSeen, type Times, writeSeen } from "./seen.ts";

/** Fields of any name; only the `_id` has a type. */
export type Raw = Collection<{ _id: Id }>;

export type Database = ReturnType<typeof openDatabase>;

/** Reads only what is durable, and answers writes only once they are. */
export const byMajority: DbOptions = {
  readPreference: "primary",
  readConcern: new ReadConcern("majority"),
  writeConcern: { w: "majority", journal: true },
};

export function openDatabase(client: MongoClient, name: string, hasSeveralMembers: () => boolean) {
  const db = client.db(name, byMajority);
  const servers = nameOf(client.options);
  let seen: Times | undefined;
  /** `seen` as a text; undefined until somebody asks for it. */
  let text: string | undefined;

  /**
   * A session that is causally after all that the process has seen or written. Two writes of one session can't overtake
   * one another: the server refuses the earlier one once it knows the later.
   */
  function openSession(): ClientSession {
    const session = client.startSession({ causalConsistency: true });
    if (seen) session.advanceOperationTime(seen.operationTime);
    if (seen?.clusterTime) session.advanceClusterTime(seen.clusterTime);
    return session;
  }

  /** Makes later sessions come after what this session, or the answer to a command, has seen or written. */
  function noteTime({ operationTime, clusterTime }: Partial<Times>): void {
    if (!operationTime || (seen && !operationTime.greaterThan(seen.operationTime))) return;
    seen = { operationTime, clusterTime: clusterTime ?? seen?.clusterTime };
    text = undefined;
  }

  /** What the process has seen, as a text for others. */
  function told(): string | undefined {
    text ??= seen && writeSeen(servers, seen);
    return text;
  }

  return {
    db,
    /** Whether another server may have become the primary while the one that is asked does not know it yet. */
    hasSeveralMembers,
    openSession,
    noteTime,
    seen: told,
    /** Makes later sessions come after what others have seen: one of these texts, or several with spaces between. */
    follow(texts: string): void {
      if (texts === told()) return;
      const times = readSeen(servers, texts);
      if (times) noteTime(times);
    },
    /** Runs calls in a session of their own. */
    async inSession<R>(calls: (session: ClientSession) => Promise<R>): Promise<R> {
      const session = openSession();
      try {
        return await calls(session);
      } finally {
        noteTime(session);
        await session.endSession();
      }
    },
  };
}

/** The members of the command `find`. */
interface Query {
  readonly filter: Fields;
  readonly batchSize: number;
  readonly limit?: number;
  readonly sort?: Fields;
  readonly hint?: Fields;
}

interface ReadOptions {
  readonly level?: "majority" | "linearizable";
  readonly session?: ClientSession;
  readonly limits?: ReadLimits | undefined;
}

type Queried = Pick<Database, "db" | "noteTime">;

/** Not retried after a failure: that is up to the caller. */
export async function find(
  database: Queried,
  collection: string,
  query: Query,
  { level = "majority", session, limits }: ReadOptions = {},
): Promise<Uint8Array[]> {
  const maxTimeMS = limits?.maxTimeMS() ?? TIMEOUT_MS.repeatable;
  const command = { find: collection, ...query, readConcern: { level }, maxTimeMS };
  const options = { ...(session && { session }), ...(limits && { signal: limits.signal }) };
  const ask = async (): Promise<Uint8Array[]> => {
    const whole = await findInOneAnswer(database, collection, command, options);
    if (whole) return whole;
    const found: unknown[] = await database.db.runCursorCommand(command, { ...options, raw: true }).toArray();
    return found as Uint8Array[];
  };
  return withTimeout("repeatable", ask());
}

/**
 * The documents that a command finds; undefined when they exceed the 16 MiB of one answer. One answer nearly always holds
 * all, and the driver's own cursor would cost this process twice as much. Documents stay bytes, so that one that can't be
 * read does not hide its neighbours. Without a session, later sessions still come after what was seen here.
 */
async function findInOneAnswer(
  { db, noteTime }: Queried,
  collection: string,
  command: Fields,
  options: { readonly session?: ClientSession; readonly signal?: AbortSignal },
): Promise<Uint8Array[] | undefined> {
  const answer = await db.command(command, { ...options, fieldsAsRaw: { firstBatch: true } });
  const { cursor, operationTime, $clusterTime: clusterTime } = answer;
  if (!options.session) noteTime({ operationTime, clusterTime });
  if (cursor.id === 0) return cursor.firstBatch;
  await db.command({ killCursors: collection, cursors: [cursor.id] }, options);
  return undefined;
}
