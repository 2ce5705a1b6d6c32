/** What is wrong around a petstore, made so for real: a small disk, and servers that are set up badly. */
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { realTime } from "@petstore/runtime/clock";
import { MongoClient } from "mongodb";
import { describe, expect, test } from "vitest";
import {
  ask,
  freePorts,
  mongodMissing,
  type ReplicaSet,
  startMongod,
  startReplicaSet,
} from "../test/harness/mongod.ts";
import { startOldMongod } from "../test/harness/old-mongod.ts";
import { mountSmallDisk, smallDiskMissing } from "../test/harness/small-disk.ts";
import { examine } from "./doctor.ts";
import { configOf, fillShop, type Place } from "./fixtures/shop.ts";

const timeout = 120_000;
const found = async (place: Place) =>
  (await examine(configOf(place), { time: realTime, say: () => {} })).map(
    ({ invariant, detail }) => `${invariant}: ${detail}`,
  );

test.skipIf(smallDiskMissing)("a disk of the embedded store with less than 100 MiB", { timeout }, async () => {
  await using disk = await mountSmallDisk(90);
  const place = { dataDir: join(disk.dir, "data"), mongodbUri: undefined };
  await fillShop(place);
  expect(await found(place)).toEqual([expect.stringMatching(/^env-disk: The disk of \S+\/data has 8\d MiB left/)]);
});

/** Changes the configuration of the set; `change` gets it as it is. */
async function reconfigure({ primary }: ReplicaSet, change: (config: { members: object[] }) => object) {
  const { host } = await primary();
  const { config } = await ask(host, { replSetGetConfig: 1 });
  await ask(host, { replSetReconfig: { ...config, ...change(config), version: config.version + 1 } });
  // Until something is written under it, majority reads wait for some ten seconds.
  await ask(host, { appendOplogNote: 1, data: {} });
}

describe.skipIf(mongodMissing)("MongoDB", () => {
  test.skipIf(smallDiskMissing)("on a disk with less than 500 MiB", { timeout }, async () => {
    await using disk = await mountSmallDisk(490);
    await using set = await startReplicaSet({ within: disk.dir });
    const place = { dataDir: "/dev/null/unused", mongodbUri: set.uri };
    await fillShop(place);
    expect(await found(place)).toEqual([expect.stringMatching(/^env-disk: The disk of MongoDB has \d+ MiB left/)]);
  });

  test("with an arbiter, and with a majority that keeps nothing on disk", { timeout }, async () => {
    await using set = await startReplicaSet();
    const place = { dataDir: "/dev/null/unused", mongodbUri: set.uri };
    await fillShop(place);
    expect(await found(place)).toEqual([]);
    await reconfigure(set, () => ({ writeConcernMajorityJournalDefault: false }));
    expect(await found(place)).toEqual([
      expect.stringMatching(/^env-write-concern: writeConcernMajorityJournalDefault is false/),
    ]);

    const [port = 0] = await freePorts(1);
    const arbiter = await startMongod({ port, dir: join(tmpdir(), `mongod-${port}`), args: ["--replSet", "rs"] });
    try {
      const { host } = await set.primary();
      await ask(host, { setDefaultRWConcern: 1, defaultWriteConcern: { w: "majority" } });
      await reconfigure(set, ({ members }) => ({
        writeConcernMajorityJournalDefault: true,
        members: [...members, { _id: 1, host: arbiter.host, arbiterOnly: true }],
      }));
      expect(await found(place)).toEqual([expect.stringMatching(/^env-write-concern: 1 of 2 members are arbiters/)]);
    } finally {
      await arbiter.stop();
    }
  });

  test("with an oplog that is full and reaches back for minutes", { timeout }, async () => {
    await using set = await startReplicaSet();
    const place = { dataDir: "/dev/null/unused", mongodbUri: set.uri };
    await fillShop(place);
    await using client = new MongoClient(set.uri);
    // More than the 64 MB of the oplog.
    const filler = client.db("filler").collection("filler");
    for (let mebibytes = 0; mebibytes < 80; mebibytes += 10) await filler.insertOne({ bytes: Buffer.alloc(10 << 20) });
    expect(await found(place)).toEqual([expect.stringMatching(/^env-oplog: The oplog reaches back 0\.0 h/)]);

    // As it is told to. What is gone is gone, but from now on a day is kept.
    await client.db("admin").command({ replSetResizeOplog: 1, minRetentionHours: 24 });
    expect(await found(place)).toEqual([]);
  });

  test("that is no replica set, and so can't be looked at", { timeout }, async () => {
    const [port = 0] = await freePorts(1);
    const server = await startMongod({ port, dir: join(tmpdir(), `mongod-${port}`) });
    try {
      expect(await command(`mongodb://127.0.0.1:${port}/`)).toMatch(/standalone/);
    } finally {
      await server.stop();
    }
  });
});

test("a MongoDB that is too old can't be looked at", { timeout }, async () => {
  using server = await startOldMongod();
  expect(await command(server.uri)).toMatch(/too old: 6\.0 or newer is needed/);
});

/** What the command says of a server that it can't look at. */
async function command(MONGODB_URI: string): Promise<string> {
  const env = { PATH: process.env.PATH, MONGODB_URI };
  const ran = await promisify(execFile)(process.execPath, ["doctor/main.ts", "--json"], { env }).catch(
    (error) => error,
  );
  const { findings } = JSON.parse(ran.stdout);
  expect([ran.code, findings.length, findings[0].invariant]).toEqual([2, 1, "env-version"]);
  expect(ran.stderr).toBe(`${findings[0].detail}\n`);
  return findings[0].detail;
}
