/** What the embedded engine tells of its changes: nothing that is not on disk, and nothing of another past of the same file. */
import { copyFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setImmediate as tick } from "node:timers/promises";
import { realTime } from "@petstore/runtime/clock";
import { beforeEach, expect, test } from "vitest";
import { directoryForEach } from "../fixtures/directory.ts";
import { silent } from "../fixtures/silent.ts";
import { type Change, type Changes, type Doc, Expired, put, type Store, schema } from "../port.ts";
import { openFile, openLog } from "./file.ts";
import { embeddedStore, openEmbedded } from "./sqlite.ts";

interface Row extends Doc {
  readonly _id: number;
  readonly text: string;
}
const ROWS = schema<Row>()("rows", {}, undefined, ({ text }: Row) => ({ text }));
/** As before there was anything to tell. */
const SILENT_ROWS = schema<Row>()("rows", {});

const dir = directoryForEach();
let path: string;
beforeEach(() => {
  path = join(dir.path, "pet.db");
});

let now = 0;
const options = { ...realTime, clock: () => ++now, log: silent, onFatal: () => expect.unreachable() };
const open = () => openEmbedded(path, options);
const rowsOf = (store: Store) => store.collection(ROWS);
type Rows = Awaited<ReturnType<typeof rowsOf>>;
const write = (rows: Pick<Rows, "update">, text: string) => rows.update(1, (_, rev) => put({ _id: 1, text }, rev));
const never = () => new AbortController().signal;

/** Collects what is told. */
function collect(changes: Changes<{ readonly text: string }>): Change<{ readonly text: string }>[] {
  const told: Change<{ readonly text: string }>[] = [];
  const read = async () => {
    for await (const batch of changes) told.push(...batch);
  };
  void read();
  return told;
}
const texts = (told: readonly Change<{ readonly text: string }>[]) => told.map(({ shown }) => shown.text);
const ticks = async () => {
  for (let i = 0; i < 10; i++) await tick();
};

test("nothing is told before it is on disk, neither to who waits nor to who reads what was told before", async () => {
  const db = openFile(path);
  const log = openLog(db);
  let held: PromiseWithResolvers<void> | undefined;
  const sync = async () => {
    await held?.promise;
    await log.sync();
  };
  const store = embeddedStore(db, path, options, { ...log, sync });
  const rows = await rowsOf(store);
  const begin = (await rows.changes({ signal: AbortSignal.abort() })).position;
  await write(rows, "before");
  const told = collect(await rows.changes({ signal: never() }));
  held = Promise.withResolvers();
  const written = write(rows, "a");
  await ticks();
  let late: typeof told = [];
  void rows.changes({ after: begin, signal: never() }).then((changes) => (late = collect(changes)));
  await ticks();
  expect(texts([...told, ...late])).not.toContain("a");
  held.resolve();
  await written;
  await ticks();
  expect(texts(told)).toEqual(["a"]);
  expect(texts(late)).toEqual(["before", "a"]);
  await store.close();
});

test("a change that found no room is not told, then or later", async () => {
  const db = openFile(path);
  const store = embeddedStore(db, path, options);
  const rows = await rowsOf(store);
  const changes = await rows.changes({ signal: never() });
  const begin = changes.position;
  const told = collect(changes);
  await write(rows, "a");
  db.exec("PRAGMA max_page_count = 1");
  await expect(write(rows, "b".repeat(100_000))).rejects.toMatchObject({ name: "Unavailable", inDoubt: false });
  db.exec("PRAGMA max_page_count = 1000000");
  await write(rows, "c");
  await ticks();
  expect(texts(told)).toEqual(["a", "c"]);
  const again = collect(await rows.changes({ after: begin, signal: never() }));
  await ticks();
  expect(texts(again)).toEqual(["a", "c"]);
  await store.close();
});

test("a file that told nothing so far goes on, and tells from then on", async () => {
  const before = await open();
  await write(await before.collection(SILENT_ROWS), "old");
  await before.close();
  const store = await open();
  const rows = await rowsOf(store);
  const told = collect(await rows.changes({ signal: never() }));
  await write(rows, "new");
  await ticks();
  expect(told).toMatchObject([{ type: "updated", rev: 2, shown: { text: "new" } }]);
  await store.close();
});

test("positions of before have expired when the file was changed by a version that tells nothing", async () => {
  let store = await open();
  let rows = await rowsOf(store);
  await write(rows, "a");
  const { position } = await rows.changes({ signal: AbortSignal.abort() });
  await store.close();
  store = await open();
  await write(await store.collection(SILENT_ROWS), "b");
  await store.close();
  store = await open();
  rows = await rowsOf(store);
  await write(rows, "c");
  await expect(rows.changes({ after: position, signal: never() })).rejects.toThrow(Expired);
  await store.close();
});

test("a position from after a backup has expired once that is restored, however many changes follow", async () => {
  const [backup, identity] = [join(dir.path, "backup"), join(dirname(path), "identity.db")];
  let store = await open();
  let rows = await rowsOf(store);
  await write(rows, "a");
  const known = (await rows.changes({ signal: AbortSignal.abort() })).position;
  await store.close();
  copyFileSync(path, backup);
  copyFileSync(identity, `${backup}-identity`);
  store = await open();
  rows = await rowsOf(store);
  await write(rows, "lost");
  const lost = (await rows.changes({ signal: AbortSignal.abort() })).position;
  await store.close();

  copyFileSync(backup, path);
  copyFileSync(`${backup}-identity`, identity);
  store = await open();
  rows = await rowsOf(store);
  await expect(rows.changes({ after: lost, signal: never() })).rejects.toThrow(Expired);
  await write(rows, "b");
  await write(rows, "c");
  await expect(rows.changes({ after: lost, signal: never() })).rejects.toThrow(Expired);
  const told = collect(await rows.changes({ after: known, signal: never() }));
  await ticks();
  expect(texts(told)).toEqual(["b", "c"]);
  await store.close();
});

test("the clock may be set back: what is forgotten is the oldest all the same", async () => {
  let time = 9000;
  const store = await openEmbedded(path, { ...options, clock: () => time });
  const rows = await rowsOf(store);
  const begin = (await rows.changes({ signal: AbortSignal.abort() })).position;
  for (const [at, text] of [
    [9000, "a"],
    [5000, "b"],
    [9500, "c"],
  ] as const) {
    time = at;
    await write(rows, text);
  }
  expect(await rows.forgetChanges(8000, 10)).toBe(0);
  const told = collect(await rows.changes({ after: begin, signal: never() }));
  await ticks();
  expect(told.map(({ time }) => time)).toEqual([9000, 9000, 9500]);
  expect(await rows.forgetChanges(9500, 10)).toBe(1);
  await store.close();
});
