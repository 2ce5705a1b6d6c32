/** The databases of several services as a whole: read as they were at one cluster time, or filled. */
import "./driver-on-demand.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { Timestamp } from "mongodb";
import { Corrupt, UnsupportedFormat } from "../port.ts";
import { connectAtOnce } from "./connect.ts";
import { byMajority, databaseName, FILLING, FORMAT, formatProblem } from "./database.ts";
import { recordsIn, SEQUENCES } from "./rows.ts";

export { FORMAT };

const ABOUT = "_petstore";
/** A service asks every 2 s whether its database is there; see `isInUse`. */
const LOOK_MS = 5_000;

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
  const client = await connectAtOnce(uri, { appName: "petstore data", socketTimeoutMS: 0 });
  const database = (service: string) => client.db(databaseName(uri, service), byMajority);
  const about = (service: string) => database(service).collection<About>(ABOUT);
  const saidBy = (service: string) => about(service).findOne({ _id: "format" });
  const formats = () => Promise.all(services.map(saidBy));
  const collectionsOf = async (service: string) => [...(await recordsIn(database(service)).collections()), SEQUENCES];

  return {
    /** Without the password. */
    name: `${client.options.srvHost ?? client.options.hosts.join(", ")}, ${databaseName(uri, "*")}`,
    records: (service: string, at?: Timestamp) => recordsIn(database(service), at),

    /** The cluster time of now. Everything that was answered before is in a snapshot of it. */
    async now(): Promise<Timestamp> {
      const find = { find: ABOUT, limit: 1, readConcern: { level: "snapshot" } };
      const { cursor } = await database(services[0] as string).command(find);
      return cursor.atClusterTime;
    },

    /** Throws `UnsupportedFormat` unless all of them are in the format of this version. */
    async checkFormats(): Promise<void> {
      for (const service of services) {
        const { format, fills } = (await saidBy(service)) ?? {};
        const name = databaseName(uri, service);
        if (format === undefined) throw new Corrupt(`There is no database ${name} of a petstore.`);
        if (fills !== undefined) throw new Corrupt(`The database ${name} is not complete: ${fills} was cut short.`);
        const problem = formatProblem(name, format);
        if (problem !== undefined) throw new UnsupportedFormat(problem);
      }
    },

    /** What the databases are being filled by, if that was cut short. */
    async fills(): Promise<string | undefined> {
      return (await formats()).find((one) => one?.fills !== undefined)?.fills;
    },

    async holdData(): Promise<boolean> {
      for (const service of services)
        for (const collection of await collectionsOf(service))
          if (await database(service).collection(collection).findOne()) return true;
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
        for (const collection of await collectionsOf(service)) await database(service).collection(collection).drop();
    },

    /** No petstore starts with the databases until `filled`. Resolves to what has them say again what they said before. */
    async fill(by: string): Promise<() => Promise<void>> {
      const former = await formats();
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
    [Symbol.asyncDispose]: () => client.close(),
  };
}
