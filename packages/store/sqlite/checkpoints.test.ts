/** A copy of the file without its log is an old state, and is refused; a file that has taken in its log never is. */
import { cpSync, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { realTime } from "@petstore/runtime/clock";
import { beforeEach, expect, test } from "vitest";
import { directoryForEach } from "../fixtures/directory.ts";
import { silent } from "../fixtures/silent.ts";
import { type Collection, type Doc, put, type Store, schema } from "../port.ts";
import { takeCheckpoints } from "./checkpoints.ts";
import { openEmbedded } from "./sqlite.ts";

interface Row extends Doc {
  readonly _id: number;
  readonly filler: string;
}
const ROWS = schema<Row>()("rows", {});

const dir = directoryForEach();
const file = (of: string, end = "") => join(dir.path, of, `pet.db${end}`);

let store: Store;
let rows: Collection<Row>;
let count: number;
const open = (of: string) =>
  openEmbedded(file(of), { ...realTime, clock: () => 0, log: silent, onFatal: () => expect.unreachable() });
async function start(of = "data"): Promise<void> {
  store = await open(of);
  rows = await store.collection(ROWS);
}
async function insert(pages = 1): Promise<void> {
  count++;
  await rows.update(count, () => put({ _id: count, filler: "x".repeat(4000 * pages) }, undefined));
}

beforeEach(async () => {
  count = 0;
  await start();
});

/** Copies files of the running store beside the identity of its directory. */
function copy(of: string, ...ends: readonly string[]): void {
  mkdirSync(join(dir.path, of));
  cpSync(join(dir.path, "data", "identity.db"), join(dir.path, of, "identity.db"));
  for (const end of ends) cpSync(file("data", end), file(of, end));
}
async function expectRefused(of: string): Promise<void> {
  const { size } = statSync(file(of));
  for (let i = 0; i < 2; i++) {
    const refused = {
      name: "Corrupt",
      message: expect.stringMatching(/pet\.db lacks its latest changes: .* DATA_DIR /),
    };
    await expect(open(of)).rejects.toMatchObject(refused);
  }
  expect([statSync(file(of)).size, existsSync(file(of, "-wal"))]).toEqual([size, false]);
}
/** As the docs say, for who has nothing else. */
async function expectOldState(of: string, ids: number): Promise<void> {
  const sql = new DatabaseSync(file(of));
  sql.exec(`UPDATE "$log" SET is_needed = 0`);
  sql.close();
  await start(of);
  expect(await rows.list({ limit: 1e6, order: "asc" })).toHaveLength(ids);
  await store.close();
}
async function expectWhole(of: string): Promise<void> {
  await store.close();
  await start(of);
  expect((await rows.list({ limit: 1e6, order: "asc" })).map(({ _id }) => _id)).toEqual(
    Array.from({ length: count }, (_, i) => i + 1),
  );
}

test("of a running store, from its first answer and through all of its checkpoints", { timeout: 60_000 }, async () => {
  copy("first", "");
  await expectRefused("first");
  let size = 0;
  for (let i = 0; i < 60; i++) {
    await insert(100);
    copy(`${i}`, "");
    await expectRefused(`${i}`);
    size = Math.max(size, statSync(file("data", "-wal")).size);
  }
  // The log was begun anew again and again.
  expect(size).toBeLessThan(2 * 4120 * 1200);
  expect(statSync(file("data")).size).toBeGreaterThan(5000 * 4096);
  await store.close();
});

test("an old state is taken for what it is on demand", async () => {
  await insert(1200);
  await insert();
  copy("copy", "");
  await expectRefused("copy");
  await store.close();
  await expectOldState("copy", 1);
});

test("beside an empty log, which SQLite makes when it opens the copy", async () => {
  await insert();
  copy("copy", "");
  writeFileSync(file("copy", "-wal"), "");
  await expect(open("copy")).rejects.toMatchObject({ name: "Corrupt" });
  await store.close();
});

test("a copy with its log is whole, also after another program has opened it and taken in the log", async () => {
  for (let i = 0; i < 3; i++) await insert();
  copy("with", "", "-wal");
  copy("merged", "", "-wal");
  const sql = new DatabaseSync(file("merged"));
  expect(sql.prepare("SELECT count(*) AS n FROM rows").get()).toEqual({ n: 3 });
  sql.close();
  expect(existsSync(file("merged", "-wal"))).toBe(false);
  await expectWhole("with");
  await expectWhole("merged");
  await store.close();
});

test("a store that was closed is whole without a log, also if it was killed before", async () => {
  await insert(1200);
  copy("killed", "", "-wal");
  await store.close();
  copy("closed", "");
  await expectWhole("closed");
  await expectWhole("killed");
  await store.close();
  expect(existsSync(file("killed", "-wal"))).toBe(false);
  await start("killed");
  await expectWhole("killed");
  await store.close();
});

test("a log that grew while the file was kept gives its room back", async () => {
  store.file?.keep(true);
  for (let i = 0; i < 7; i++) await insert(2_500);
  expect(statSync(file("data", "-wal")).size).toBeGreaterThan(64 * 1024 * 1024);
  store.file?.keep(false);
  for (let i = 0; i < 3; i++) await insert();
  expect(statSync(file("data", "-wal")).size).toBeLessThanOrEqual(64 * 1024 * 1024);
  await store.close();
});

test("a log that could not be told to be dispensable, for want of room, is not removed", () => {
  let hasRoom = true;
  const full = Object.assign(new Error("database or disk is full"), { errcode: 13 });
  const says: unknown[] = [];
  const statement = (sql: string) => ({
    get: () => {
      if (sql.includes("PASSIVE")) hasRoom = false;
      return [0, 1, 1];
    },
    setReturnArrays() {},
    run: (value: number) => {
      if (!hasRoom) throw full;
      says.push(value);
    },
  });
  const db = { exec() {}, prepare: statement } as unknown as DatabaseSync;
  const checkpoints = takeCheckpoints(db);
  checkpoints.afterCommit();
  expect([says, checkpoints.mayEnd()]).toEqual([[1], false]);
  hasRoom = true;
  expect([checkpoints.mayEnd(), says]).toEqual([true, [1, 0]]);
});
