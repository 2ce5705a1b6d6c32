/**
 * How large a petstore becomes, and whether its lists stay short of work: fills the store with pets and all that belongs
 * to them, and prints the sizes on the way and the plans at the end.
 *
 * `npx node bench/growth.ts [pets] [every-change]`, a million by default. Documents are stored as they are in the end, or
 * on MongoDB change by change, which takes ten times as long and leaves the gaps that changes leave.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Collection, type Doc, put } from "@petstore/store/port";
import { type Db, MongoClient } from "mongodb";
import { openForTest } from "../packages/store/fixtures/mongo.ts";
import { silent } from "../packages/store/fixtures/silent.ts";
import { toStored } from "../packages/store/mongo/operation-log.ts";
import { openEmbedded } from "../packages/store/sqlite/sqlite.ts";
import { findMongod, startReplicaSet } from "../test/harness/mongod.ts";
import { contents, SCHEMAS, type Service, type Written } from "./contents.ts";
import { plans } from "./plans.ts";

const PETS = Number(process.argv[2] ?? 1_000_000);
const EVERY_CHANGE = process.argv[3] === "every-change";
const STAGES = [PETS / 4, PETS / 2, PETS];
const BATCH = 2000;
const NOW = Date.now();
/** As long as the names that processes give themselves. */
const PROCESS = "0123456789ab";
const SERVICES = Object.keys(SCHEMAS) as Service[];

const print = (text: string) => process.stdout.write(`${text}\n`);
const progress = (text: string) => process.stderr.isTTY && process.stderr.write(`\r\x1b[K${text}`);
const count = (value: number) => Math.round(value).toLocaleString("en");
const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(1);

/** Hands pets to `write` in batches, and calls `measure` after each stage. */
async function fill(
  name: string,
  write: (batch: Written[]) => Promise<unknown>,
  measure: (pets: number) => Promise<unknown>,
): Promise<void> {
  let id = 0;
  for (const stage of STAGES) {
    while (id < stage) {
      const size = Math.min(BATCH, stage - id);
      await write(Array.from({ length: size }, () => contents(++id, NOW)).flat());
      progress(`${name}: ${count(id)} of ${count(PETS)} pets`);
    }
    progress("");
    await measure(stage);
  }
}

async function onMongodb(): Promise<void> {
  await using set = await startReplicaSet();
  for (const service of SERVICES) {
    const store = await openForTest(set.uri, service);
    for (const declared of Object.values(SCHEMAS[service])) await store.collection<Doc, never>(declared as never);
    await store.close();
  }
  await using client = new MongoClient(set.uri, { ignoreUndefined: true });
  const db = (service: string): Db => client.db(`petstore_${service}`);

  /** As the engine stores them, when one process of each service makes all the changes. */
  const stored = (doc: Doc) => toStored({ ...doc }, undefined, { by: PROCESS, number: doc.rev });

  async function writePart(part: readonly Written[]): Promise<void> {
    const [{ service, collection }] = part as [Written];
    const into = db(service).collection<Doc>(collection);
    const longest = EVERY_CHANGE ? Math.max(...part.map(({ states }) => states.length)) : 1;
    for (let i = 0; i < longest; i++) {
      const docs = part
        .map(({ states }) => (EVERY_CHANGE ? states[i] : states.at(-1)))
        .filter((doc) => doc !== undefined)
        .map((doc) => stored(doc) as unknown as Doc);
      const replaced = docs.map((doc) => ({ replaceOne: { filter: { _id: doc._id }, replacement: doc } }));
      if (i === 0) await into.insertMany(docs, { ordered: false });
      else await into.bulkWrite(replaced, { ordered: false });
    }
  }

  async function write(batch: readonly Written[]): Promise<void> {
    const parts = Map.groupBy(batch, ({ service, collection }) => `${service} ${collection}`);
    await Promise.all(parts.values().map(writePart));
  }

  async function measure(pets: number): Promise<void> {
    await client.db("admin").command({ fsync: 1 });
    print(`\n### MongoDB, ${count(pets)} pets\n`);
    print("| collection | documents | bytes of one | data, MiB | on disk, MiB | indexes, MiB |");
    print("|---|--:|--:|--:|--:|---|");
    for (const service of SERVICES) {
      for (const name of Object.keys(SCHEMAS[service])) {
        const stats = await db(service).command({ collStats: name });
        const indexes = Object.entries<number>(stats.indexSizes).map(([index, size]) => `${index} ${mib(size)}`);
        const sizes = `${stats.avgObjSize} | ${mib(stats.size)} | ${mib(stats.storageSize)}`;
        print(`| ${service}.${name} | ${count(stats.count)} | ${sizes} | ${indexes.join(", ")} |`);
      }
    }
  }

  await fill("MongoDB", write, measure);
  print(`\n### Plans, ${count(PETS)} pets\n`);
  print("| query | keys examined | documents examined | returned | plan |");
  print("|---|--:|--:|--:|---|");
  for await (const { query, keys, documents, returned, plan } of plans(db, PETS, NOW)) {
    print(`| ${query} | ${keys} | ${documents} | ${returned} | ${plan} |`);
  }
}

async function embedded(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "petstore-bench-"));
  const onFatal = (error: unknown) => {
    throw error;
  };
  try {
    const collections = new Map<string, Collection<Doc>>();
    const stores = await Promise.all(
      SERVICES.map(async (service) => {
        const store = await openEmbedded(join(dir, `${service}.db`), { clock: Date.now, log: silent, onFatal });
        for (const [name, declared] of Object.entries(SCHEMAS[service])) {
          collections.set(`${service} ${name}`, await store.collection<Doc, never>(declared as never));
        }
        return store;
      }),
    );
    const write = (batch: Written[]) =>
      Promise.all(
        batch.map(({ service, collection, states }) => {
          const doc = states.at(-1) as Doc;
          return collections.get(`${service} ${collection}`)?.update(doc._id, () => put(doc, undefined));
        }),
      );
    const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    const measure = async (pets: number) => {
      const sizes = SERVICES.map((service) => `${service}.db ${mib(sizeOf(join(dir, `${service}.db`)))}`);
      const log = SERVICES.map((service) => sizeOf(join(dir, `${service}.db-wal`))).reduce((a, b) => a + b);
      print(`\nembedded, ${count(pets)} pets, MiB: ${sizes.join(", ")}; write-ahead logs ${mib(log)}`);
    };
    await fill("embedded", write, measure);
    await Promise.all(stores.map((store) => store.close()));
    await measure(PETS);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

await embedded();
if (findMongod()) await onMongodb();
else print("\nThere is no mongod: set MONGOD to its path, or run .ci/mongod.");
