/** Fills the petstore's stores directly, without its services, in batches: MongoDB, or the files of the embedded store. */

import { join } from "node:path";
import { realTime } from "@petstore/runtime/clock";
import { type Collection, type Doc, put } from "@petstore/store/port";
import { MongoClient } from "mongodb";
import { openForTest } from "../../packages/store/fixtures/mongo.ts";
import { silent } from "../../packages/store/fixtures/silent.ts";
import { databaseName } from "../../packages/store/mongo/mongo.ts";
import { toStored } from "../../packages/store/mongo/operation-log.ts";
import { openEmbedded } from "../../packages/store/sqlite/sqlite.ts";
import { SCHEMAS, SERVICES, type Service, type Written } from "./written.ts";

const BATCH = 2000;
/** A process name of the usual length. */
const PROCESS = "0123456789ab";

export interface Filling {
  readonly pets: number;
  documentsOf(id: number): Written[];
  /** The last ids that were used, of pets and of orders. */
  readonly lastIds: { readonly pet: number; readonly order: number };
  progress?(pets: number): void;
}

async function inBatches({ pets, documentsOf, progress }: Filling, write: (batch: Written[]) => Promise<unknown>) {
  for (let id = 0; id < pets; ) {
    const size = Math.min(BATCH, pets - id);
    await write(Array.from({ length: size }, () => documentsOf(++id)).flat());
    progress?.(id);
  }
}

/** The document as the engine stores it after all changes were made by one process. */
export const storedInMongodb = (doc: Doc) =>
  toStored({ ...doc }, undefined, { by: PROCESS, number: doc.rev }) as unknown as Doc;

/** Creates the petstore's databases and indexes at `uri`, empty. */
export async function prepareMongodb(uri: string): Promise<void> {
  await using client = new MongoClient(uri);
  for (const service of SERVICES) {
    await client.db(databaseName(uri, service)).dropDatabase();
    const store = await openForTest(uri, service);
    for (const declared of Object.values(SCHEMAS[service])) await store.collection<Doc, never>(declared as never);
    await store.close();
  }
}

export async function fillMongodb(uri: string, filling: Filling): Promise<void> {
  await prepareMongodb(uri);
  await using client = new MongoClient(uri, { ignoreUndefined: true });
  const db = (service: string) => client.db(databaseName(uri, service));
  await inBatches(filling, (batch) => {
    const parts = Map.groupBy(batch, ({ service, collection }) => `${service} ${collection}`);
    const writes = parts.values().map((part) => {
      const [{ service, collection }] = part as [Written];
      const docs = part.map(({ states }) => storedInMongodb(states.at(-1) as Doc));
      return db(service).collection<Doc>(collection).insertMany(docs, { ordered: false });
    });
    return Promise.all(writes);
  });
  for (const [service, last] of Object.entries(filling.lastIds)) {
    const sequences = db(service).collection<{ _id: string; last: number }>("_sequences");
    await sequences.updateOne({ _id: service }, { $set: { last } }, { upsert: true });
  }
}

/** Opens the embedded stores of a data directory for writing. */
export async function openEmbeddedStores(dataDir: string) {
  const onFatal = (error: unknown) => {
    throw error;
  };
  const collections = new Map<string, Collection<Doc>>();
  const stores = new Map(
    await Promise.all(
      SERVICES.map(async (service) => {
        const store = await openEmbedded(join(dataDir, `${service}.db`), { ...realTime, log: silent, onFatal });
        for (const [name, declared] of Object.entries(SCHEMAS[service])) {
          collections.set(`${service} ${name}`, await store.collection<Doc, never>(declared as never));
        }
        return [service, store] as const;
      }),
    ),
  );
  return {
    store: (service: Service) => stores.get(service),
    write: (batch: readonly Written[]) =>
      Promise.all(
        batch.map(({ service, collection, states }) => {
          const doc = states.at(-1) as Doc;
          return collections.get(`${service} ${collection}`)?.update(doc._id, () => put(doc, undefined));
        }),
      ),
    close: async () => void (await Promise.all(stores.values().map((store) => store.close()))),
  };
}

export async function fillEmbedded(dataDir: string, filling: Filling): Promise<void> {
  const stores = await openEmbeddedStores(dataDir);
  await inBatches(filling, stores.write);
  for (const [service, last] of Object.entries(filling.lastIds)) {
    for (let taken = 0; taken < last; taken += BATCH) {
      const some = Array.from({ length: Math.min(BATCH, last - taken) });
      await Promise.all(some.map(() => stores.store(service as Service)?.nextId(service)));
    }
  }
  await stores.close();
}
