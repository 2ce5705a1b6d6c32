/**
 * The database of a service as the rest of the engine sees it: its name and format, bytes by `_id`, every call causally after
 * what the process has seen or written.
 */
import { createHash } from "node:crypto";
import {
  BSON,
  type ClientSession,
  type ClusterTime,
  type Collection,
  type DbOptions,
  type MongoClient,
  ReadConcern,
  Timestamp,
} from "mongodb";
import type { Fields } from "../document/codec.ts";
import type { Id } from "../port.ts";
import { type ReadLimits, TIMEOUT_MS, withTimeout } from "./deadline.ts";

/**
 * Goes up when what is stored changes so that another version could no longer read it.
 * 2: the log of operations is called `_operations`.
 * 3: orders are stored once their units are reserved; idempotency keys hold no contents.
 */
export const FORMAT = 3;
/** Of a database that is being filled. No petstore starts with it. */
export const FILLING = 0;

/** Why a database of this format can't be used; undefined if it can. */
export function formatProblem(database: string, format: number): string | undefined {
  if (format === FORMAT) return undefined;
  if (format === FILLING)
    return `The database ${database} is being filled by npm run data, or that was cut short: give the same command again.`;
  return `The database ${database} was written by ${
    format > FORMAT
      ? "a newer petstore: upgrade this one."
      : "an older petstore, in a format that this one does not read: name another database in the connection string."
  }`;
}

/** How a process of a version tells MongoDB which databases it works with, such as "petstore/1.0.0 petstore_*". */
export const appName = (uri: string, version: string): string => `petstore/${version} ${databaseName(uri, "*")}`;

/** `<database of the URI, or petstore>_<service>` */
export function databaseName(uri: string, service: string): string {
  const [, database = "petstore"] = /^[^/]*\/\/[^/?]*\/([^?]+)/.exec(uri) ?? [];
  return `${decodeURIComponent(database)}_${service}`;
}

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
  const ask = async (): Promise<Uint8Array[]> =>
    (await findInOneAnswer(database, collection, command, options)) ??
    ((await database.db.runCursorCommand(command, { ...options, raw: true }).toArray()) as unknown[] as Uint8Array[]);
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

/**
 * What a process has seen of a database, as a text for other processes that read the same one: the time of the latest
 * operation, and the signed time of the cluster, by which a server believes that there was such an operation. Both are what
 * causally consistent sessions have to tell one another:
 * https://www.mongodb.com/docs/manual/core/read-isolation-consistency-recency/#causal-consistency
 */
interface Times {
  readonly operationTime: Timestamp;
  readonly clusterTime?: ClusterTime | undefined;
}

/** A name for the servers of a connection string, the same in each process that names the same ones. */
export const nameOf = ({ srvHost, hosts }: MongoClient["options"]): string =>
  createHash("sha256")
    .update(srvHost ?? hosts.map(String).sort().join())
    .digest("base64url")
    .slice(0, 8);

const hex = (value: number) => value.toString(16).padStart(8, "0");
const TIMES = /^([0-9a-f]{8})([0-9a-f]{8})([\w-]*)$/;

/** Of two texts about the same data the greater one is the later. */
export function writeSeen(data: string, { operationTime, clusterTime }: Times): string {
  const signed = clusterTime ? Buffer.from(BSON.serialize(clusterTime)).toString("base64url") : "";
  return `${data}:${hex(operationTime.getHighBitsUnsigned())}${hex(operationTime.getLowBitsUnsigned())}${signed}`;
}

/** Of several texts with spaces between, reads the one about these data. Undefined if there is none. */
export function readSeen(data: string, texts: string): Times | undefined {
  const text = texts.split(" ").find((one) => one.startsWith(`${data}:`));
  const [, high = "", low = "", signed = ""] = TIMES.exec(text?.slice(data.length + 1) ?? "") ?? [];
  if (low === "") return undefined;
  const operationTime = new Timestamp({ t: Number.parseInt(high, 16), i: Number.parseInt(low, 16) });
  if (signed === "") return { operationTime };
  const clusterTime = BSON.deserialize(Buffer.from(signed, "base64url"), { promoteLongs: false }) as ClusterTime;
  return { operationTime, clusterTime };
}
