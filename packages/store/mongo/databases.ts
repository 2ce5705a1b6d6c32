/** The databases of several services as a whole: read as they were at one cluster time, or filled. */
import "./driver-on-demand.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { BSON, type Db, MongoServerError, type Timestamp } from "mongodb";
import { decodeSame, peek } from "../document/codec.ts";
import { Corrupt, type Id, UnsupportedFormat, UnusableServer } from "../port.ts";
import type { Entry, Records } from "../records.ts";
import { checkServer, createClient } from "./connect.ts";
import { byMajority } from "./database.ts";
import { databaseName, FILLING, FORMAT, formatProblem } from "./identity.ts";

export { FORMAT };

const SEQUENCES = "_sequences";
const ABOUT = "_petstore";
/** SnapshotTooOld, SnapshotUnavailable */
const TOO_OLD = new Set<unknown>([239, 246]);
/** A service asks every 2 s whether its database is there; see `isInUse`. */
const LOOK_MS = 5_000;

/** What a database says of itself. */
interface About {
  readonly _id: "format";
  readonly format: number;
  /** Set while it is being filled, by what. Its format is `FILLING` meanwhile. */
  readonly fills?: string;
}

export type Databases = Awaited<ReturnType<typeof openDatabases>>;

/** Throws `UnusableServer` for a connection string, or a server, that can't be used, also if nothing answers there. */
export async function openDatabases(uri: string, services: readonly string[]) {
  // Without a socket timeout: a page of a large collection may have to be read from the disk.
  const client = createClient(uri, { appName: "petstore data", socketTimeoutMS: 0 });
  const database = (service: string) => client.db(databaseName(uri, service), byMajority);
  const about = (service: string) => database(service).collection<About>(ABOUT);
  try {
    checkServer(await client.db("admin").command({ hello: 1 }));
  } catch (error) {
    await client.close();
    if (error instanceof UnusableServer) throw error;
    throw new UnusableServer(`leads to no MongoDB that can be used: ${(error as Error).message}`);
  }

  /** The collections of the petstore. */
  const collectionsOf = async (service: string): Promise<string[]> => {
    const all = await database(service).listCollections({}, { nameOnly: true }).toArray();
    return all
      .map(({ name }) => name)
      .filter((name) => !/^(_|system\.)/.test(name))
      .sort();
  };

  return {
    /** Without the password. */
    name: `${client.options.srvHost ?? client.options.hosts.join(", ")}, ${databaseName(uri, "*")}`,
    records: (service: string, at?: Timestamp): Records =>
      recordsIn(database(service), () => collectionsOf(service), at),

    /** The cluster time of now. Everything that was answered before is in a snapshot of it. */
    async now(): Promise<Timestamp> {
      const find = { find: ABOUT, limit: 1, readConcern: { level: "snapshot" } };
      const { cursor } = await database(services[0] as string).command(find);
      return cursor.atClusterTime;
    },

    /** Throws `UnsupportedFormat` unless all of them are in the format of this version. */
    async checkFormats(): Promise<void> {
      for (const service of services) {
        const { format, fills } = (await about(service).findOne({ _id: "format" })) ?? {};
        const name = databaseName(uri, service);
        if (format === undefined) throw new Corrupt(`There is no database ${name} of a petstore.`);
        if (fills !== undefined) throw new Corrupt(`The database ${name} is not complete: ${fills} was cut short.`);
        const problem = formatProblem(name, format);
        if (problem !== undefined) throw new UnsupportedFormat(problem);
      }
    },

    /** What the databases are being filled by, if that was cut short. */
    async fills(): Promise<string | undefined> {
      const all = await Promise.all(services.map((service) => about(service).findOne({ _id: "format" })));
      return all.find((one) => one?.fills !== undefined)?.fills;
    },

    async holdData(): Promise<boolean> {
      for (const service of services)
        for (const collection of [...(await collectionsOf(service)), SEQUENCES])
          if (
            await database(service)
              .collection(collection)
              .findOne({}, { projection: { _id: 1 } })
          )
            return true;
      return false;
    },

    /**
     * Whether some process uses the databases. A service reads every 2 s from a collection that nobody else reads; the server
     * counts that.
     */
    async isInUse(): Promise<boolean> {
      const looks = async () => {
        const counts = services.map(async (service) => {
          const [stats] = await about(service)
            .aggregate([{ $collStats: { latencyStats: {} } }])
            .toArray()
            .catch(() => []);
          return Number(stats?.latencyStats.reads.ops ?? 0);
        });
        return Promise.all(counts);
      };
      const before = await looks();
      if (before.every((count) => count === 0)) return false;
      await sleep(LOOK_MS);
      const after = await looks();
      // The first look is counted in the second.
      return after.some((count, i) => count > (before[i] ?? 0) + 1);
    },

    async clear(): Promise<void> {
      for (const service of services)
        for (const collection of [...(await collectionsOf(service)), SEQUENCES])
          await database(service).collection(collection).drop();
    },

    /** No petstore starts with the databases until `filled`. Resolves to what has them say again what they said before. */
    async fill(by: string): Promise<() => Promise<void>> {
      const former = await Promise.all(services.map((service) => about(service).findOne({ _id: "format" })));
      const say = (service: string, said: Omit<About, "_id"> | null | undefined) =>
        said
          ? about(service).replaceOne({ _id: "format" }, said, { upsert: true })
          : about(service).deleteOne({ _id: "format" });
      for (const service of services) await say(service, { format: FILLING, fills: by });
      return async () => {
        for (const [i, service] of services.entries()) await say(service, former[i]);
      };
    },

    async filled(): Promise<void> {
      for (const service of services) await about(service).replaceOne({ _id: "format" }, { format: FORMAT });
    },

    close: () => client.close(),
  };
}

function recordsIn(db: Db, collections: () => Promise<string[]>, at: Timestamp | undefined): Records {
  const readConcern = at ? { level: "snapshot", atClusterTime: at } : { level: "majority" };

  async function find(collection: string, query: object): Promise<Uint8Array[]> {
    try {
      return await db.runCursorCommand({ find: collection, ...query, readConcern }, { raw: true }).toArray();
    } catch (error) {
      if (!(error instanceof MongoServerError) || !TOO_OLD.has(error.code)) throw error;
      throw new SnapshotGone();
    }
  }

  return {
    collections,
    count: (collection) => db.collection(collection).estimatedDocumentCount(),
    async page(collection, after, limit) {
      // A bound of the index, and no condition: that would pass over an `_id` of another type.
      const from = after === undefined ? {} : { min: { _id: after } };
      const size = after === undefined ? limit : limit + 1;
      const by = { sort: { _id: 1 }, hint: { _id: 1 }, ...from };
      const found = await find(collection, { filter: {}, ...by, limit: size, batchSize: size });
      const entries = found.map((bytes): Entry => {
        const known = decodeSame(bytes);
        const { _id } = known ?? peek(bytes);
        if (typeof _id !== "string" && typeof _id !== "number")
          throw new Corrupt(
            `${db.databaseName}.${collection} has a document that no petstore wrote: ${_id}. Remove it.`,
          );
        if (!known) return { _id, bytes };
        const { _operations, ...doc } = known;
        return { _id, doc };
      });
      return after !== undefined && entries[0]?._id === after ? entries.slice(1) : entries.slice(0, limit);
    },
    async sequences() {
      const all = await find(SEQUENCES, { filter: {}, sort: { _id: 1 } });
      return new Map(all.map((bytes) => peek(bytes)).map(({ _id, last }) => [String(_id), Number(last)]));
    },
    async last(collection) {
      const [found] = await find(collection, { filter: {}, sort: { _id: -1 }, limit: 1, projection: { _id: 1 } });
      return found && (peek(found)._id as Id);
    },
    async add(collection, entries) {
      const documents = entries.map((entry) =>
        // No process remembers a change of it.
        "doc" in entry ? { ...entry.doc, _operations: [] } : damagedDocument(entry, collection),
      );
      await db.collection(collection).insertMany(documents as { _id: never }[], { ordered: true });
    },
    async setSequence(name, last) {
      await db.collection<{ _id: string }>(SEQUENCES).replaceOne({ _id: name }, { last }, { upsert: true });
    },
  };
}

/** Throws `Corrupt` unless MongoDB can have it under its id. */
function damagedDocument({ _id, bytes }: Extract<Entry, { bytes: unknown }>, collection: string): BSON.Document {
  try {
    if (peek(bytes)._id === _id) return BSON.deserialize(bytes, { promoteValues: false });
  } catch {} // reported below
  throw new Corrupt(`Document ${_id} of ${collection} is so damaged that MongoDB can't have it: remove it first.`);
}

/** Reading took longer than the server keeps what was. */
export class SnapshotGone extends Error {
  override readonly name = "SnapshotGone";
  readonly code = "SNAPSHOT_GONE";
  constructor() {
    super(
      "MongoDB keeps what was for 5 minutes, unless it is told otherwise, and reading took longer. Tell each member of the " +
        "replica set to keep it for an hour, and begin anew: " +
        "db.adminCommand({ setParameter: 1, minSnapshotHistoryWindowInSeconds: 3600 })",
    );
  }
}
