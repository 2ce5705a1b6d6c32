/** Files of open stores are copied as they are at one instant, while somebody writes to them. */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { realTime } from "@petstore/runtime/clock";
import { afterEach, beforeEach, expect, test } from "vitest";
import { directoryForEach } from "../fixtures/directory.ts";
import { silent } from "../fixtures/silent.ts";
import { type Collection, type Doc, put, type Store, type StoreFile, schema } from "../port.ts";
import { checkTogether, copyIdentity, giveIdentity, openAtRest, openNew, recordsIn, settle } from "./at-rest.ts";
import { openEmbedded } from "./sqlite.ts";

interface Row extends Doc {
  readonly _id: number;
  readonly filler: string;
}
const ROWS = schema<Row>()("rows", {});
const NAMES = ["pet.db", "order.db"];
/** So large that a few make a checkpoint due. */
const FILLER = "x".repeat(500_000);

const dir = directoryForEach();
const at = (...names: string[]) => join(dir.path, ...names);
let stores: Store[] = [];
let rows: Collection<Row>[] = [];
const files = () => stores.map(({ file }) => file as StoreFile);

beforeEach(async () => {
  mkdirSync(at("copy"));
  const options = { ...realTime, log: silent, onFatal: () => expect.unreachable() };
  stores = await Promise.all(NAMES.map((name) => openEmbedded(at("data", name), options)));
  rows = await Promise.all(stores.map((store) => store.collection(ROWS)));
});
afterEach(() => Promise.all(stores.map((store) => store.close())));

/** Writes a row to the one store and then to the other, again and again. */
function keepWriting(filler: string) {
  let isOver = false;
  let count = 0;
  const work = async () => {
    for (let _id = 1; !isOver; _id++) {
      for (const collection of rows) await collection.update(_id, () => put({ _id, filler }, 0));
      count = _id;
    }
  };
  const done = work();
  return {
    written: () => count,
    stop() {
      isOver = true;
      return done;
    },
  };
}

/** Copies the logs up to there, and counts what each copy has. */
async function copiedRows(logs: readonly number[]): Promise<number[]> {
  for (const [i, { path }] of files().entries())
    writeFileSync(at("copy", `${NAMES[i]}-wal`), readFileSync(`${path}-wal`).subarray(0, logs[i]));
  await copyIdentity(at("data"), at("copy"));
  const opened = NAMES.map((name) => {
    settle(at("copy", name));
    return openAtRest(at("copy", name));
  });
  for (const [i, db] of opened.entries()) checkTogether(at("copy", NAMES[i] ?? ""), db);
  const counts = await Promise.all(opened.map((db) => recordsIn(db).count("rows")));
  for (const db of opened) db.close();
  return counts;
}
const copyAll = () => {
  for (const [i, { path }] of files().entries()) copyFileSync(path, at("copy", NAMES[i] ?? ""));
};

test("there is no cut between two files, however long it takes to come from one to the other", async () => {
  for (const file of files()) file.keep(true);
  copyAll();
  const writing = keepWriting("");
  await expect.poll(writing.written).toBeGreaterThan(5);
  const logs: number[] = [];
  for (const file of files()) {
    logs.push(file.hold());
    await sleep(100); // without the first hold, many rows go to both meanwhile
  }
  const least = writing.written();
  for (const file of files()) file.release();
  const held = writing.written();
  await expect.poll(writing.written).toBeGreaterThan(held + 5);
  await writing.stop();
  const [first = 0, second = 0] = await copiedRows(logs);
  expect(first).toBeGreaterThanOrEqual(least);
  expect([0, 1]).toContain(first - second);
});

test("a file that is kept stays as it is, and goes into its log again afterwards", async () => {
  const sizes = () => files().map(({ path }) => statSync(path).size);
  for (const file of files()) file.keep(true);
  const before = sizes();
  const writing = keepWriting(FILLER);
  await expect.poll(writing.written).toBeGreaterThan(5);
  copyAll();
  await expect.poll(writing.written).toBeGreaterThan(25);
  expect(sizes()).toEqual(before);
  const logs = files().map((file) => file.hold());
  const count = writing.written();
  for (const file of files()) file.release();
  await writing.stop();
  const [first = 0] = await copiedRows(logs);
  expect([0, 1]).toContain(first - count);

  for (const file of files()) file.keep(false);
  for (const collection of rows) await collection.update(1000, () => put({ _id: 1000, filler: "" }, 0));
  expect(sizes()[0]).toBeGreaterThan(10 * FILLER.length);
});

test("a file whose log could not be taken in is given no identity, and so not taken for complete", () => {
  mkdirSync(at("new"));
  openNew(at("new", "pet.db")).close();
  const reader = new DatabaseSync(at("new", "pet.db"));
  // Keeps the log from being removed, as a full disk does.
  reader.exec("PRAGMA journal_mode = WAL; BEGIN; SELECT * FROM sqlite_schema");
  expect(() => giveIdentity(at("new"), ["pet.db"])).toThrow(/locked/);
  reader.close();
  giveIdentity(at("new"), ["pet.db"]);
  expect(readdirSync(at("new"))).toEqual(["identity.db", "pet.db"]);
});
