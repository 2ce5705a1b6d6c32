import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { realTime } from "@petstore/runtime/clock";
import { beforeEach, expect, test } from "vitest";
import { directoryForEach } from "../fixtures/directory.ts";
import { silent } from "../fixtures/silent.ts";
import { Corrupt, type Doc, put, StoreLocked, schema } from "../port.ts";
import { inspectFile } from "./inspection.ts";
import { openEmbedded } from "./sqlite.ts";

interface Thing extends Doc {
  readonly size?: number;
  readonly filler?: string;
}
const THINGS = schema<Thing>()("things", { size: ["size"] });
const directory = directoryForEach();
let path = "";
beforeEach(() => {
  path = join(directory.path, "things.db");
});

const onFatal = (error: unknown) => {
  throw error;
};
async function open() {
  const store = await openEmbedded(path, { ...realTime, log: silent, onFatal });
  const things = await store.collection(THINGS);
  const add = (_id: number | string, size?: number, filler = "") =>
    things.update(_id, () => put({ _id, size, filler }, undefined));
  return { store, things, add };
}

/** Names and contents of all files. */
const files = (of = directory.path) =>
  readdirSync(of).map((name) => [name, statSync(join(of, name)).mtimeMs, readFileSync(join(of, name), "base64")]);

/** By hand, while nobody has the file open. */
function change(sql: string): void {
  using db = new DatabaseSync(path, { defensive: false });
  db.exec(sql);
}

async function look<R>(at: string, work: (of: ReturnType<typeof inspectFile>) => Promise<R>): Promise<R> {
  const inspection = inspectFile(at);
  try {
    return await work(inspection);
  } finally {
    await inspection.close();
  }
}
const idsIn = (at = path) => look(at, async ({ page }) => (await page("things", 10)).map(({ _id }) => _id));

test("pages go through all documents, also those with ids of another kind", async () => {
  const { store, add } = await open();
  for (const id of [1, 2, 10, "a", "b"]) await add(id, Number(id) || undefined);
  await store.nextId("things");
  await store.close();
  await look(path, async ({ page, many, read, sequences }) => {
    expect((await page("things", 3)).map(({ _id, indexed }) => [_id, indexed])).toEqual([
      [1, { size: 1 }],
      [2, { size: 2 }],
      [10, { size: 10 }],
    ]);
    expect((await page("things", 3, 10)).map(({ _id }) => _id)).toEqual(["a", "b"]);
    expect((await page("things", 3, "b")).length).toBe(0);
    expect((await many("things", ["b", 7, 2])).map((row) => read(row, THINGS).size)).toEqual([undefined, 2]);
    expect(await page("others", 3)).toEqual([]);
    expect(await sequences()).toEqual([["things", 1]]);
  });
});

test("looking leaves no trace", async () => {
  const { store, add } = await open();
  await add(1);
  await store.close();
  const before = files();
  expect(await idsIn()).toEqual([1]);
  expect(await look(path, ({ problems }) => problems())).toEqual([]);
  expect(files()).toEqual(before);
});

test("what a killed process left in its log is seen, and stays there", async () => {
  const { store, add } = await open();
  await add(1);
  const killed = join(directory.path, "killed.db");
  for (const end of ["", "-wal"]) copyFileSync(path + end, killed + end);
  await store.close();
  const before = files();
  expect(await idsIn(killed)).toEqual([1]);
  expect(files()).toEqual(before);
});

test("a file that is in use can only be looked at through the store that has it", async () => {
  const { store, add } = await open();
  await add(1, 5);
  expect(() => inspectFile(path)).toThrow(StoreLocked);
  expect(await store.inspection?.page("things", 10)).toMatchObject([{ _id: 1, indexed: { size: 5 } }]);
  expect(await store.inspection?.wrongIndexes(THINGS)).toEqual([]);
  await store.close();
});

test("indexes that are missing or wrong are built anew by the next start", async () => {
  const { store, add } = await open();
  await add(1, 5);
  await store.close();
  change(`DROP INDEX "things(size)"; UPDATE things SET key_size = 7`);
  await look(path, async ({ wrongIndexes, page, dropIndexes }) => {
    expect(await wrongIndexes(THINGS)).toEqual(["the index things(size) is missing"]);
    expect(await page("things", 1)).toMatchObject([{ indexed: { size: 7 } }]);
    await dropIndexes(THINGS);
  });
  const again = await open();
  expect(await again.things.list({ where: { size: 5 }, limit: 1, order: "asc" })).toMatchObject([{ _id: 1 }]);
  await again.store.close();
});

test("an index that lost an entry is one of the problems", async () => {
  const { store, add } = await open();
  for (const id of [1, 2]) await add(id, id);
  await store.close();
  change(`PRAGMA writable_schema = ON;
    UPDATE sqlite_schema SET sql = replace(sql, 'IS NOT NULL', '> 1') WHERE name = 'things(size)'`);
  change(`REINDEX "things(size)"; PRAGMA writable_schema = ON;
    UPDATE sqlite_schema SET sql = replace(sql, '> 1', 'IS NOT NULL') WHERE name = 'things(size)'`);
  expect(await look(path, ({ problems }) => problems())).toMatchObject([{ about: "index" }]);
});

test("a file that is damaged in places is, and one that is none can't be opened", async () => {
  const { store, add } = await open();
  for (let id = 1; id <= 100; id++) await add(id, id, "x".repeat(1_000));
  await store.close();
  const bytes = readFileSync(path);
  bytes.fill(7, 40_000, 60_000);
  writeFileSync(path, bytes);
  await look(path, async ({ problems, page }) => {
    expect((await problems()).map(({ about }) => about)).toContain("file");
    await expect(page("things", 1_000)).rejects.toThrow(Corrupt);
  });
  writeFileSync(path, "no database, though it is as long as one has to be ".repeat(100));
  expect(() => inspectFile(path)).toThrow(Corrupt);
});

test("a file of another directory, and one that lacks its log, are problems", async () => {
  const { store, add } = await open();
  await add(1);
  const copy = join(directory.path, "copy.db");
  copyFileSync(path, copy);
  await store.close();
  expect(await look(copy, ({ problems }) => problems())).toMatchObject([
    { about: "identity", text: expect.stringContaining("lacks its latest changes") },
  ]);
  change(`UPDATE "$identity" SET id = 'another'`);
  expect(await look(path, ({ problems }) => problems())).toMatchObject([
    { about: "identity", text: expect.stringContaining("belongs to the files of another DATA_DIR") },
  ]);
});
