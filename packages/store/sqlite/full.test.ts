/** No room for a change: it has no effect, which is certain; reads go on, and so do changes once there is room. */
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { beforeEach, expect, test } from "vitest";
import { directoryForEach } from "../fixtures/directory.ts";
import { silent } from "../fixtures/silent.ts";
import { type Collection, type Doc, Full, keep, put, schema } from "../port.ts";
import { openFile } from "./file.ts";
import { embeddedStore, openEmbedded } from "./sqlite.ts";

interface Row extends Doc {
  readonly _id: number;
  readonly filler: string;
}
const ROWS = schema<Row>()("rows", { filler: ["filler"] });

const dir = directoryForEach();
let path: string;
beforeEach(() => {
  path = join(dir.path, "pet.db");
});

const options = { ...realTime, clock: () => 0, log: silent, onFatal: () => expect.unreachable() };
/** SQLite then says that it is full, as it does when the disk is. */
const limitPages = (db: DatabaseSync, count: number) => db.exec(`PRAGMA max_page_count = ${count}`);
const insert = (rows: Collection<Row>, _id: number) =>
  rows.update(_id, (_, rev) => put({ _id, filler: `${_id}`.repeat(500) }, rev));

/** Inserts rows until one is refused; answers how many there are. */
async function fill(rows: Collection<Row>, first: number): Promise<number> {
  for (let id = first; ; id++) {
    const error = await insert(rows, id).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error === undefined) continue;
    expect(error).toBeInstanceOf(Full);
    expect(error).toMatchObject({ name: "Unavailable", inDoubt: false });
    return id - first;
  }
}

test("a change without room has no effect, and what was answered before is there", async () => {
  const log: string[] = [];
  const db = openFile(path);
  const logger = pino({ base: null }, { write: (line: string) => void log.push(JSON.parse(line).msg) });
  const store = embeddedStore(db, path, { ...options, log: logger });
  const rows = await store.collection(ROWS);
  const first = await store.nextId("rows");
  limitPages(db, 60);
  const count = await fill(rows, 1);
  expect(count).toBeGreaterThan(3);

  for (let i = 0; i < 3; i++) {
    const [refused, neighbour] = await Promise.allSettled([
      insert(rows, count + 1),
      rows.update(1, (doc) => put({ _id: 1, filler: `${doc?.filler}!` }, 0)),
    ]);
    expect([refused, neighbour]).toMatchObject([
      { reason: { name: "Unavailable", inDoubt: false } },
      { reason: { name: "Unavailable", inDoubt: false } },
    ]);
    expect(await rows.get(count + 1)).toBeUndefined();
    expect(await rows.get(1)).toMatchObject({ rev: 1, filler: "1".repeat(500) });
    expect(await rows.list({ limit: 1000, order: "asc" })).toHaveLength(count);
    expect(await rows.update(1, (doc) => keep(doc?.rev))).toBe(1);
    await store.ping();
  }
  expect(log).toEqual([expect.stringContaining("the disk is full")]);

  limitPages(db, 1_000_000);
  expect(await insert(rows, count + 1)).toBe(1);
  expect(await store.nextId("rows")).toBeGreaterThan(first);
  expect(log).toEqual([expect.anything(), expect.stringContaining("room again")]);
  await store.close();

  const again = await openEmbedded(path, options);
  const stored = await (await again.collection(ROWS)).list({ limit: 1000, order: "asc" });
  expect(stored.map(({ _id, rev }) => [_id, rev])).toEqual(Array.from({ length: count + 1 }, (_, i) => [i + 1, 1]));
  await again.close();
});

test("a collection that can't be made leaves nothing behind, and the others as they are", async () => {
  const db = openFile(path);
  const store = embeddedStore(db, path, options);
  const rows = await store.collection(ROWS);
  const reserved = schema<Row>()("sqlite_rows", {}, undefined, (row: Row) => row);
  await expect(store.collection(reserved)).rejects.toThrow("reserved");
  expect(db.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite_rows%'").all()).toEqual([]);
  expect(await insert(rows, 1)).toBe(1);
  await store.close();
});

test("a number that found no room is never given twice", async () => {
  const db = openFile(path);
  const store = embeddedStore(db, path, options);
  const rows = await store.collection(ROWS);
  const numbers = [await store.nextId("rows")];
  for (let round = 0; round < 3; round++) {
    limitPages(db, 1);
    const [number] = await Promise.allSettled([store.nextId("rows"), fill(rows, round * 1000)]);
    if (number.status === "fulfilled") numbers.push(number.value);
    limitPages(db, 1_000_000);
    numbers.push(await store.nextId("rows"));
  }
  await store.close();
  const again = await openEmbedded(path, options);
  numbers.push(await again.nextId("rows"));
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  await again.close();
});
