/** Backups, restores and moves on MongoDB. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Secret } from "@petstore/runtime/environment";
import { put } from "@petstore/store/port";
import { MongoClient } from "mongodb";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { databaseName } from "../packages/store/mongo/mongo.ts";
import { serviceNames } from "../processes/names.ts";
import { mongodbMissing, openPlace } from "../test/harness/mongodb.ts";
import { makeBackup, verifyBackup } from "./backup.ts";
import { copy, importFile, restore } from "./fill.ts";
import { addThings, nextIds, openOne, THINGS, thingsIn } from "./fixtures/stores.ts";
import { linesOf } from "./lines.ts";
import { openMongo, type Place } from "./places.ts";
import { openTarget } from "./targets.ts";

const timeout = 120_000;

describe.skipIf(mongodbMissing)("on MongoDB", { timeout }, () => {
  let stack: AsyncDisposableStack;
  let dir = "";
  let mongo: { readonly uri: Secret };
  const directory = (name: string) => ({ directory: join(dir, name) }) satisfies Place;
  const plain = { replace: false, say() {} };
  const replacing = { ...plain, replace: true };

  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    dir = mkdtempSync(join(tmpdir(), "petstore-data-"));
    stack.defer(() => rmSync(dir, { recursive: true }));
    mongo = { uri: new Secret(stack.use(await openPlace()).uri) };
  });
  afterEach(() => stack.disposeAsync());

  test("from the embedded store to MongoDB and back all is as it was", async () => {
    await addThings(directory("data"), 50);
    const before = await thingsIn(directory("data"));
    await copy(directory("data"), mongo, plain);
    expect(await thingsIn(mongo)).toEqual(before);
    await copy(mongo, directory("back"), plain);
    expect(await thingsIn(directory("back"))).toEqual(before);
    expect(await nextIds(directory("back"))).toEqual(await nextIds(directory("data")));
  });

  test("what was brought there can be changed, and removed", async () => {
    await addThings(directory("data"), 2);
    await copy(directory("data"), mongo, plain);
    const store = await openOne(mongo, "pet");
    stack.defer(() => store.close());
    const things = await store.collection(THINGS);
    const rename = () => things.update(1, () => put({ _id: 1, name: "renamed" }, "done"));
    expect(await rename()).toBe("done");
    await things.remove(2, () => true);
    expect((await things.list({ limit: 9, order: "asc" })).map(({ _id, name }) => [_id, name])).toEqual([
      [1, "renamed"],
    ]);
  });

  test("a backup is of one cluster time, while somebody writes, and comes back on either engine", async () => {
    await addThings(mongo, 20);
    const stores = await Promise.all(serviceNames.map((service) => openOne(mongo, service)));
    const things = await Promise.all(stores.map((store) => store.collection(THINGS)));
    let [isOver, written] = [false, 0];
    const writing = (async () => {
      for (let _id = 1000; !isOver; _id++) {
        for (const one of things) await one.update(_id, () => put({ _id, name: "late" }, 0));
        written = _id;
      }
    })();
    await expect.poll(() => written).toBeGreaterThan(1010);
    const least = written;
    await makeBackup(mongo, join(dir, "backup"), {});
    const most = written + 1;
    await expect.poll(() => written).toBeGreaterThan(most + 10);
    isOver = true;
    await writing;
    await Promise.all(stores.map((store) => store.close()));

    const { counts } = await verifyBackup(join(dir, "backup"));
    const found = serviceNames.map((service) => 1000 + (counts[`${service}/things`] ?? 0) - 20 - 1);
    for (const last of found) expect(last >= least && last <= most).toBe(true);
    // Written in the order of the services: no service has more than the one before it, and one more at most.
    expect(found).toEqual(found.toSorted((a, b) => b - a));
    expect((found[0] ?? 0) - (found.at(-1) ?? 0)).toBeLessThanOrEqual(1);

    await restore(join(dir, "backup"), directory("restored"), plain);
    await restore(join(dir, "backup"), mongo, replacing);
    expect(await thingsIn(mongo)).toEqual(await thingsIn(directory("restored")));
    expect(Math.min(...(await nextIds(mongo)).slice(0, 3))).toBeGreaterThan(1_000_000);
    await makeBackup(directory("restored"), join(dir, "files"), {});
    await restore(join(dir, "files"), mongo, replacing);
    expect(await thingsIn(mongo)).toEqual(await thingsIn(directory("restored")));
  });

  test("what holds data, is in use, or is half filled is refused", async () => {
    await addThings(directory("data"), 3);
    await makeBackup(directory("data"), join(dir, "backup"), {});
    await addThings(mongo, 1);
    await expect(restore(join(dir, "backup"), mongo, plain)).rejects.toThrow(/holds data/);
    const store = await openOne(mongo, "order");
    const inUse = setInterval(() => void store.ping(), 1_000);
    stack.defer(() => clearInterval(inUse));
    await expect(restore(join(dir, "backup"), mongo, replacing)).rejects.toThrow(/is in use/);
    await expect(copy(mongo, directory("copy"), plain)).rejects.toThrow(/is in use/);
    clearInterval(inUse);
    await store.close();
    await restore(join(dir, "backup"), mongo, replacing);
    expect((await thingsIn(mongo)).order).toHaveLength(3);

    const databases = await openMongo(mongo);
    await databases.fill("something else");
    await expect(openOne(mongo, "order")).rejects.toMatchObject({ name: "UnsupportedFormat" });
    await expect(makeBackup(mongo, join(dir, "half"), {})).rejects.toThrow(/something else was cut short/);
    await expect(restore(join(dir, "backup"), mongo, plain)).rejects.toThrow(/begun to be filled by something else/);
    await databases.close();
    await restore(join(dir, "backup"), mongo, replacing);
    expect((await thingsIn(mongo)).order).toHaveLength(3);
  });

  test("a copy goes on where it stopped", async () => {
    await addThings(directory("data"), 30);
    await copy(directory("data"), mongo, plain);
    const databases = await openMongo(mongo);
    await databases.fill(`a copy of ${directory("data").directory}`);
    await databases.close();
    await using client = new MongoClient(mongo.uri.reveal());
    const orders = client.db(databaseName(mongo.uri.reveal(), "order"));
    const { deletedCount } = await orders.collection<{ _id: number }>("things").deleteMany({ _id: { $gt: 7 } });
    expect(deletedCount).toBe(23);
    await orders.collection("keys").drop();
    await copy(directory("data"), mongo, plain);
    expect(await thingsIn(mongo)).toEqual(await thingsIn(directory("data")));
  });

  test("a copy of what was used meanwhile is not complete", async () => {
    await addThings(mongo, 2);
    const store = await openOne(mongo, "order");
    stack.defer(() => store.close());
    let looks = 0;
    const say = (text: string) => {
      if (!text.startsWith("Looking") || ++looks < 2) return;
      const inUse = setInterval(() => void store.ping(), 1_000);
      stack.defer(() => clearInterval(inUse));
    };
    await expect(copy(mongo, directory("copy"), { ...plain, say })).rejects.toThrow(/is in use/);
    await expect(openOne(directory("copy"), "order")).rejects.toThrow(/is being filled/);
  });

  test("nothing is copied to itself, and lost", async () => {
    await addThings(mongo, 2);
    const before = await thingsIn(mongo);
    // The same by another name.
    const same = { uri: new Secret(`${mongo.uri.reveal()}&appName=another`) };
    await expect(copy(mongo, same, replacing)).rejects.toThrow(/can't be copied to itself/);
    expect(await thingsIn(mongo)).toEqual(before);
  });

  test("whoever replaces data goes on once all of that is gone, and leaves what is half filled so", async () => {
    await addThings(mongo, 2);
    const databases = await openMongo(mongo);
    stack.defer(() => databases.close());
    await databases.fill("something else");
    const broken = async () => {
      throw new Error("the source is gone");
    };
    const filling = { ...replacing, by: "a copy" };
    await expect(openTarget(mongo, { ...filling, checkSource: broken })).rejects.toThrow("the source is gone");
    expect(await databases.fills()).toBe("something else");

    let meanwhile: string | undefined;
    const checkSource = async () => {
      meanwhile = await databases.fills();
    };
    await using _ = await openTarget(mongo, { ...filling, checkSource });
    expect(meanwhile).not.toBe("a copy");
    expect([await databases.holdData(), await databases.fills()]).toEqual([false, "a copy"]);
    await expect(openOne(mongo, "pet")).rejects.toThrow(/is being filled by npm run data/);
  });

  test("a document of no petstore, or of no engine, is named and not passed over", async () => {
    await addThings(mongo, 2);
    await addThings(directory("data"), 2);
    const databases = await openMongo(mongo);
    stack.defer(() => databases.close());
    const records = databases.records("pet");
    expect((await records.page("things", 1, 1)).map(({ _id }) => _id)).toEqual([2]);
    expect((await records.page("things", 1, 0)).map(({ _id }) => _id)).toEqual([1]);
    await using client = new MongoClient(mongo.uri.reveal());
    await client.db(databaseName(mongo.uri.reveal(), "pet")).collection("things").insertOne({ name: "not ours" });
    const reading = Array.fromAsync((await linesOf(new Map([["pet", records]]))).lines());
    await expect(reading).rejects.toThrow(/pet has in things .* no petstore wrote: .* Remove it/);

    const file = new DatabaseSync(join(dir, "data", "pet.db"));
    file.prepare("UPDATE things SET doc = ? WHERE _id = 2").run(Uint8Array.of(1, 2, 3));
    file.close();
    await expect(copy(directory("data"), mongo, replacing)).rejects.toMatchObject({
      name: "Corrupt",
      message: expect.stringContaining("Document 2 of things is so damaged"),
    });
  });

  test("a snapshot that is gone says what to set", async () => {
    await addThings(mongo, 1);
    const databases = await openMongo(mongo);
    const at = await databases.now();
    const { Timestamp } = await import("mongodb");
    const long = new Timestamp({ t: at.getHighBits() - 86_400, i: 1 });
    await expect(databases.records("pet", long).page("things", 1)).rejects.toThrow(
      /minSnapshotHistoryWindowInSeconds: 3600/,
    );
    await databases.close();
  });

  test("an export of it is imported into it again", async () => {
    const { exportMongo } = await import("./backup.ts");
    await addThings(mongo, 5);
    const before = await thingsIn(mongo);
    await exportMongo(join(dir, "all.jsonl"), mongo);
    await importFile(join(dir, "all.jsonl"), mongo, replacing);
    expect(await thingsIn(mongo)).toEqual(before);
  });
});
