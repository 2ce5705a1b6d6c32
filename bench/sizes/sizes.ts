/**
 * Measures the size of a petstore's data, and checks that its lists need little work: fills the store with pets and all that
 * belongs to them, and prints the sizes on the way and the query plans at the end.
 *
 * `npm run bench -- sizes [pets] [every-change]`, a million pets by default. Documents are stored in their final state, or on
 * MongoDB change by change, which takes ten times as long and leaves the gaps that changes leave.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Doc } from "@petstore/store/port";
import { type Db, MongoClient } from "mongodb";
import { findMongod, startReplicaSet } from "../../test/harness/mongod.ts";
import { known, wholeNumber } from "../options.ts";
import { showStatus } from "../progress.ts";
import { count } from "../report/conditions.ts";
import { openEmbeddedStores, prepareMongodb, storedInMongodb } from "../seed/petstore.ts";
import { SCHEMAS, SERVICES, type Written } from "../seed/written.ts";
import { contents } from "./contents.ts";
import { plans } from "./plans.ts";

const PETS = wholeNumber("The number of pets", process.argv[3] ?? "1000000");
const EVERY_CHANGE = known("way to fill the store", process.argv.slice(4), ["every-change"]).length > 0;
const STAGES = [PETS / 4, PETS / 2, PETS];
const BATCH = 2000;
const NOW = Date.now();

const print = (text: string) => process.stdout.write(`${text}\n`);
const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(1);

/** Passes the documents of pets to `write` in batches, and calls `measure` after each stage. */
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
      showStatus(`${name}: ${count(id)} of ${count(PETS)} pets`);
    }
    showStatus("");
    await measure(stage);
  }
}

async function onMongodb(): Promise<void> {
  await using set = await startReplicaSet();
  await prepareMongodb(set.uri);
  await using client = new MongoClient(set.uri, { ignoreUndefined: true });
  const db = (service: string): Db => client.db(`petstore_${service}`);

  async function writePart(part: readonly Written[]): Promise<void> {
    const [{ service, collection }] = part as [Written];
    const into = db(service).collection<Doc>(collection);
    const longest = EVERY_CHANGE ? Math.max(...part.map(({ states }) => states.length)) : 1;
    for (let i = 0; i < longest; i++) {
      const docs = part
        .map(({ states }) => (EVERY_CHANGE ? states[i] : states.at(-1)))
        .filter((doc) => doc !== undefined)
        .map(storedInMongodb);
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
  try {
    const stores = await openEmbeddedStores(dir);
    const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    const measure = async (pets: number) => {
      const sizes = SERVICES.map((service) => `${service}.db ${mib(sizeOf(join(dir, `${service}.db`)))}`);
      const log = SERVICES.map((service) => sizeOf(join(dir, `${service}.db-wal`))).reduce((a, b) => a + b);
      print(`\nembedded, ${count(pets)} pets, MiB: ${sizes.join(", ")}; write-ahead logs ${mib(log)}`);
    };
    await fill("embedded", stores.write, measure);
    await stores.close();
    await measure(PETS);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

await embedded();
if (findMongod()) await onMongodb();
else print("\nThere is no mongod: set MONGOD to its path, or run .ci/mongod.");
