/** Numbers are taken in the file block by block: most cost no commit, and none is given twice, however the process ends. */
import { cpSync } from "node:fs";
import { join } from "node:path";
import { realTime } from "@petstore/runtime/clock";
import { expect, test } from "vitest";
import { directoryForEach } from "../fixtures/directory.ts";
import { silent } from "../fixtures/silent.ts";
import { type Doc, put, schema } from "../port.ts";
import { openFile, openLog } from "./file.ts";
import { embeddedStore, openEmbedded } from "./sqlite.ts";

const dir = directoryForEach();

const options = { ...realTime, clock: () => 0, log: silent, onFatal: () => expect.unreachable() };
const open = (place: string) => openEmbedded(join(dir.path, place, "pet.db"), options);

test("a hundred numbers, one after the other, are a few commits", async () => {
  const path = join(dir.path, "pet.db");
  const db = openFile(path);
  const log = openLog(db);
  let commits = 0;
  const sync = () => {
    commits++;
    return log.sync();
  };
  const store = embeddedStore(db, path, options, { ...log, sync });
  for (let i = 1; i <= 100; i++) expect(await store.nextId("pets")).toBe(i);
  expect(commits).toBeLessThan(5);
  await store.close();
});

test("a process that dies leaves a gap, and no number is given twice", async () => {
  let place = "0";
  let store = await open(place);
  const given: number[] = [];
  for (let crash = 1; crash <= 5; crash++) {
    for (let i = 0; i < crash * 13; i++) given.push(await store.nextId("pets"));
    given.push(...(await Promise.all(Array.from({ length: crash * 20 }, () => store.nextId("pets")))));
    // What the disk holds when the process is killed now.
    cpSync(join(dir.path, place), join(dir.path, `${crash}`), { recursive: true });
    await store.close();
    place = `${crash}`;
    store = await open(place);
  }
  expect(given).toEqual([...new Set(given)].sort((a, b) => a - b));
  expect(given.at(-1)).toBeLessThan(given.length + 5 * 33);
  await store.close();
});

test("a number above one that is in use is in the file before it is given", async () => {
  let store = await open("0");
  const given = [await store.nextId("pets", { above: 1_000 })];
  cpSync(join(dir.path, "0"), join(dir.path, "1"), { recursive: true });
  given.push(await store.nextId("pets"));
  await store.close();
  expect(given).toEqual([1_001, 1_002]);
  store = await open("1");
  expect(await store.nextId("pets")).toBeGreaterThan(1_001);
  await store.close();
});

test("a block that found no room is taken anew before any of it is given", async () => {
  const path = join(dir.path, "a", "pet.db");
  const db = openFile(path);
  const store = embeddedStore(db, path, options);
  const rows = await store.collection(schema<Doc & { readonly filler: string }>()("rows", {}));
  const given: number[] = [];
  const take = async () => void given.push(await store.nextId("pets"));
  // Until the next one needs another block.
  for (let i = 0; i < 33; i++) await take();
  db.exec("PRAGMA max_page_count = 1");
  const filler = "x".repeat(100_000);
  const outcomes = await Promise.allSettled([take(), rows.update(1, () => put({ _id: 1, filler }, 0))]);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  db.exec("PRAGMA max_page_count = 1000000");
  for (let i = 0; i < 5; i++) await take();
  cpSync(join(dir.path, "a"), join(dir.path, "b"), { recursive: true });
  await store.close();
  const again = await open("b");
  expect(await again.nextId("pets")).toBeGreaterThan(given.at(-1) ?? 0);
  await again.close();
});

test("a store that is closed leaves no gap, also when numbers are asked for while it closes", async () => {
  let store = await open("a");
  const given = [await store.nextId("pets"), await store.nextId("pets")];
  const late = [store.nextId("pets")];
  const closing = store.close();
  late.push(store.nextId("pets"));
  for (const one of await Promise.allSettled(late)) if (one.status === "fulfilled") given.push(one.value);
  await closing;
  store = await open("a");
  given.push(await store.nextId("pets"));
  expect(given).toEqual(given.map((_, i) => i + 1));
  await store.close();
});
