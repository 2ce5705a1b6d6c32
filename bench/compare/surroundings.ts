/** What all subjects of a run share: MongoDB, a load generator and a place for files. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { arch, cpus, release, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { MongoClient } from "mongodb";
import { freePorts } from "../../test/harness/instances.ts";
import { findMongod, startReplicaSet } from "../../test/harness/mongod.ts";
import { createGenerator, type Generator } from "../load/generator.ts";
import type { Place } from "../peer.ts";
import type { Results } from "./results.ts";

export interface Surroundings {
  readonly generator: Generator;
  /** The process id of MongoDB. */
  readonly mongod: number;
  readonly machine: Results["machine"];
  /** Makes MongoDB write what it still has to write for those who used it before: it would do so at the cost of the next. */
  checkpoint(): Promise<void>;
  /** Database, directory and free ports. The same name always gets the same database and directory. */
  place(name: string): Promise<Place>;
}

/**
 * Starts a replica set of one member; the stack ends it. `cacheGib` is the size of its cache, by default a quarter of a GiB.
 */
export async function openSurroundings(stack: AsyncDisposableStack, cacheGib = 0.25): Promise<Surroundings> {
  if (!findMongod()) throw new Error("There is no mongod: set MONGOD to its path, or run .ci/mongod.");
  const { uri } = stack.use(await startReplicaSet());
  const client = stack.use(await new MongoClient(uri).connect());
  const admin = client.db("admin");
  await admin.command({ setParameter: 1, wiredTigerEngineRuntimeConfig: `cache_size=${cacheGib * 1024}M` });
  const { pid, version } = await admin.command({ serverStatus: 1 });
  const dir = mkdtempSync(join(tmpdir(), "petstore-bench-"));
  const generator = createGenerator(dir);
  process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
  return {
    generator,
    mongod: Number(pid),
    machine: { ...machine(), mongod: version, generator: generator.name },
    async checkpoint() {
      await admin.command({ fsync: 1 });
    },
    async place(name) {
      const dataDir = join(dir, name);
      mkdirSync(dataDir, { recursive: true });
      return { mongoUrl: uri, database: `bench_${name.replaceAll("-", "_")}`, dataDir, port: await freePorts(2) };
    },
  };
}

function machine() {
  const [cpu] = cpus();
  return {
    cpu: `${cpu?.model.trim()}, ${arch()}`,
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
  };
}
