/** Looking at the database of one service, whoever works with it, and at the server that has it. */
import { isDeepStrictEqual } from "node:util";
import "./driver-on-demand.ts";
import { type Db, type Document, type IndexDescription, type MongoClient, MongoServerError } from "mongodb";
import type { EngineContext } from "../open.ts";
import type { Problem, StoreAtRest } from "../rows.ts";
import { connectAtOnce, UNAUTHORIZED } from "./connect.ts";
import { byMajority, databaseName, formatProblem } from "./database.ts";
import { indexDescriptions } from "./lists.ts";
import { readStored } from "./operation-log.ts";
import { rowOf, rowsIn } from "./rows.ts";

const NAMESPACE_NOT_FOUND = 26;
/** The server sorts and reads a page in that time however busy it is. */
const SOCKET_MS = 60_000;
/** Clocks may differ by that much and nobody is harmed. */
const APART_MS = 2_000;
const FEW_BYTES = 500 * 1024 * 1024;
/** Readers of changes may be away for that long by default on the embedded store. */
const OPLOG_HOURS = 24;
/** An oplog that is not full to this part holds all that ever happened. */
const FULL = 0.9;

/**
 * How often, and how long apart in milliseconds, other processes have to be seen: for more than twice as long as the server
 * waits for changes, whose reader may have ended meanwhile.
 */
const LOOKS = 10;
const LOOK_MS = 250;

/** Throws `UnusableServer`, also for a server that does not answer. */
export async function inspectDatabase(
  uri: string,
  service: string,
  { clock, sleep }: Pick<EngineContext, "clock" | "sleep">,
): Promise<StoreAtRest> {
  const client = await connectAtOnce(uri, { appName: "petstore doctor", socketTimeoutMS: SOCKET_MS });
  const db = client.db(databaseName(uri, service), byMajority);
  const { find, page, sequences } = rowsIn(db);

  /** The connections of this petstore, and of such as don't say of which: of all users, or of one's own. */
  const users = async (allUsers: boolean) => {
    const found = await client
      .db("admin")
      .aggregate([{ $currentOp: { allUsers, idleConnections: true } }, { $match: { appName: /^petstore(\/|$)/ } }])
      .toArray();
    return found.filter(({ appName }) => appName === "petstore" || appName.endsWith(` ${databaseName(uri, "*")}`));
  };

  return {
    page,
    sequences,
    many: async (collection, ids) => (await find(collection, { hint: { _id: 1 } }, { _id: { $in: ids } })).map(rowOf),
    read: ({ doc }, kind) => readStored(doc, kind).doc as never,
    async wrongIndexes({ name, indexes }) {
      const there = await indexesOf(db, name);
      return indexDescriptions({ indexes })
        .filter((declared) => !there.some((index) => isSame(index, declared)))
        .map(({ key }) => `the index on ${Object.keys(key).join(", ")} of ${name} is missing, or another one is there`);
    },
    async problems() {
      const about = await db.collection<{ _id: string; format?: number }>("_petstore").findOne({ _id: "format" });
      const problem =
        about?.format === undefined ? noFormat(db.databaseName) : formatProblem(db.databaseName, about.format);
      return [
        ...(problem === undefined ? [] : [{ about: "identity" as const, text: problem }]),
        ...(await server(client, db, clock)),
      ];
    },
    isEmpty: async () => (await db.listCollections({}, { nameOnly: true }).toArray()).length === 0,
    async isInUse() {
      // Connections are seen for a moment when their process has ended.
      for (let left = LOOKS; left > 0; left--) {
        if ((await users(true).catch(orElse(() => users(false)))).length === 0) return false;
        await sleep(LOOK_MS);
      }
      return true;
    },
    async versions() {
      const seen = await users(true).catch(orElse(() => undefined));
      return seen && new Set(seen.flatMap(({ appName }) => /^petstore\/(\S+)/.exec(appName)?.[1] ?? []));
    },
    async dropIndexes({ name, indexes }) {
      const declared = indexDescriptions({ indexes });
      const wrong = (index: Document) =>
        declared.some(({ key }) => isDeepStrictEqual(index.key, key)) && !declared.some((one) => isSame(index, one));
      for (const index of await indexesOf(db, name)) if (wrong(index)) await db.collection(name).dropIndex(index.name);
    },
    close: () => client.close(),
  };
}

const noFormat = (database: string) =>
  `The database ${database} does not say that it is a petstore's: restore all four databases from one backup.`;

const isSame = (index: Document, { key, partialFilterExpression }: IndexDescription): boolean =>
  isDeepStrictEqual(index.key, key) && isDeepStrictEqual(index.partialFilterExpression, partialFilterExpression);

async function indexesOf(db: Db, collection: string): Promise<readonly Document[]> {
  try {
    return await db.collection(collection).listIndexes().toArray();
  } catch (error) {
    if (error instanceof MongoServerError && error.code === NAMESPACE_NOT_FOUND) return [];
    throw error;
  }
}

/** Goes on without what the user may not see. */
const orElse =
  <R>(instead: () => R) =>
  (error: unknown): R => {
    if (error instanceof MongoServerError && error.code === UNAUTHORIZED) return instead();
    throw error;
  };

/** How far the clocks are apart at least, in milliseconds, however long the answer takes. */
async function apartBy(client: MongoClient, clock: EngineContext["clock"]): Promise<number> {
  const before = clock();
  const { localTime } = await client.db("admin").command({ hello: 1 });
  return Math.max(0, before - localTime.getTime(), localTime.getTime() - clock());
}

async function server(client: MongoClient, db: Db, clock: EngineContext["clock"]): Promise<Problem[]> {
  const admin = client.db("admin");
  const nothing = () => undefined;
  const [apart, config, stats, oplog] = await Promise.all([
    apartBy(client, clock),
    admin.command({ replSetGetConfig: 1 }).catch(orElse(nothing)),
    db.command({ dbStats: 1 }).catch(orElse(nothing)),
    oplogOf(client).catch(orElse(nothing)),
  ]);
  const members: readonly Document[] = config?.config.members ?? [];
  const arbiters = members.filter(({ arbiterOnly }) => arbiterOnly).length;
  const free = (stats?.fsTotalSize ?? 0) - (stats?.fsUsedSize ?? 0);
  const found: (Problem | false)[] = [
    apart > APART_MS && {
      about: "clock",
      text: `The clocks of MongoDB and of this machine are ${Math.round(apart / 1000)} s apart: set them by NTP.`,
    },
    arbiters > 0 && {
      about: "write-concern",
      text: `${arbiters} of ${members.length} members are arbiters, which store nothing: when one of the others is down, no write is answered. Replace them by members with data.`,
    },
    config?.config.writeConcernMajorityJournalDefault === false && {
      about: "write-concern",
      text: "writeConcernMajorityJournalDefault is false: a majority may lose what it has confirmed when its power fails. Set it to true.",
    },
    stats?.fsTotalSize > 0 &&
      free < FEW_BYTES && {
        about: "disk",
        text: `The disk of MongoDB has ${Math.floor(free / 1024 / 1024)} MiB left, and it ends when there is none: make room.`,
      },
    oplog !== undefined &&
      oplog.full > FULL &&
      Math.max(oplog.hours, oplog.keptHours) < OPLOG_HOURS && {
        about: "oplog",
        text: `The oplog reaches back ${oplog.hours.toFixed(1)} h: whoever watches and is away for longer has to begin anew. Set storage.oplogMinRetentionHours to ${OPLOG_HOURS}.`,
      },
  ];
  return found.filter((problem) => problem !== false);
}

/** How far back the oplog reaches, how long entries are kept however many there are, and how full it is. */
async function oplogOf(client: MongoClient) {
  const local = client.db("local");
  const oplog = local.collection<{ readonly ts: { getHighBitsUnsigned(): number } }>("oplog.rs");
  const edge = async (direction: 1 | -1) => {
    const entry = await oplog
      .find({}, { sort: { $natural: direction }, projection: { ts: 1 } })
      .limit(1)
      .next();
    return entry?.ts.getHighBitsUnsigned() ?? 0;
  };
  const [first, last, { size, maxSize }, { oplogTruncation }] = await Promise.all([
    edge(1),
    edge(-1),
    local.command({ collStats: "oplog.rs" }),
    client.db("admin").command({ serverStatus: 1 }),
  ]);
  const keptHours = oplogTruncation?.oplogMinRetentionHours ?? 0;
  return { hours: (last - first) / 3600, keptHours, full: size / maxSize };
}
