/** Files that are moved, removed or replaced under an open store: nothing more is answered, and nothing answered is lost. */
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { realTime } from "@petstore/runtime/clock";
import { beforeEach, expect, test } from "vitest";
import { directoryForEach } from "../fixtures/directory.ts";
import { silent } from "../fixtures/silent.ts";
import { type Collection, type Doc, NotWritable, put, type Store, schema } from "../port.ts";
import { openEmbedded } from "./sqlite.ts";

const ROWS = schema<Doc & { readonly _id: number }>()("rows", {});

const dir = directoryForEach();
const below = (...names: readonly string[]) => join(dir.path, ...names);
const remove = (path: string) => rmSync(path, { recursive: true });

let store: Store;
let rows: Collection<Doc & { readonly _id: number }>;
let fatal: unknown[];
const insert = (_id: number) => rows.update(_id, () => put({ _id }, undefined));
const open = (of = "data") =>
  openEmbedded(below(of, "pet.db"), {
    ...realTime,
    clock: () => 0,
    log: silent,
    onFatal: (error) => fatal.push(error),
  });

beforeEach(async () => {
  fatal = [];
  mkdirSync(below("real"));
  symlinkSync(below("real"), below("data"));
  store = await open();
  rows = await store.collection(ROWS);
  await insert(1);
});

const ways: readonly (readonly [how: string, lost: string, act: () => void])[] = [
  ["the directory is removed", "pet.db", () => remove(below("real"))],
  [
    "the directory is emptied",
    "pet.db",
    () => {
      for (const name of readdirSync(below("real"))) remove(below("real", name));
    },
  ],
  ["the directory is moved", "pet.db", () => renameSync(below("real"), below("moved"))],
  ["the file is removed", "pet.db", () => remove(below("real", "pet.db"))],
  [
    "a copy takes the file's place",
    "pet.db",
    () => {
      cpSync(below("real", "pet.db"), below("copy"));
      renameSync(below("copy"), below("real", "pet.db"));
    },
  ],
  [
    "a link leads in a circle",
    "pet.db",
    () => {
      remove(below("data"));
      symlinkSync("data", below("data"));
    },
  ],
  [
    "a link leads to another directory",
    "pet.db",
    () => {
      cpSync(below("real"), below("other"), { recursive: true });
      remove(below("data"));
      symlinkSync(below("other"), below("data"));
    },
  ],
];

const expectLost = (name: string) => {
  expect(fatal).toHaveLength(1);
  expect(fatal[0]).toBeInstanceOf(NotWritable);
  expect((fatal[0] as Error).message).toMatch(
    /was moved, removed or replaced .* DATA_DIR from one backup, and start again/,
  );
  expect((fatal[0] as Error).message).toContain(`/${name} was`);
};

test.each(ways)("%s: the next change is not answered, and no later call is", async (_, lost, act) => {
  act();
  const unavailable = { name: "Unavailable" };
  await expect(insert(2)).rejects.toMatchObject({ ...unavailable, inDoubt: true });
  expectLost(lost);
  await expect(insert(3)).rejects.toMatchObject({ ...unavailable, inDoubt: false });
  await expect(rows.get(1)).rejects.toMatchObject(unavailable);
  await expect(store.ping()).rejects.toMatchObject(unavailable);
});

test.each(ways)("%s: an idle store finds out by itself", async (_, lost, act) => {
  act();
  await expect.poll(() => fatal, { timeout: 20_000 }).not.toEqual([]);
  expectLost(lost);
  await expect(store.ping()).rejects.toMatchObject({ name: "Unavailable" });
});

test.each(ways)("%s: a close finds out, and touches nothing at the old place", async (_, lost, act) => {
  act();
  mkdirSync(below("real"), { recursive: true });
  writeFileSync(below("real", "pet.db-wal"), "another's");
  await store.close();
  expectLost(lost);
  expect(readFileSync(below("real", "pet.db-wal"), "utf8")).toBe("another's");
});

test("where the log alone is removed, the file takes in what it held, and the store can be opened again", async () => {
  remove(below("real", "pet.db-wal"));
  await expect(insert(2)).rejects.toMatchObject({ name: "Unavailable", inDoubt: true });
  expect(`${fatal}`).toMatch(/pet\.db-wal is gone, and what it held is in .*pet\.db now/);
  // As the next process, which finds no lock.
  cpSync(below("real"), below("found"), { recursive: true });
  const again = await open("found");
  expect(await (await again.collection(ROWS)).getMany([1, 2])).toMatchObject([{ _id: 1 }, { _id: 2 }]);
  await again.close();
  expect(fatal).toHaveLength(1);
});

test("what was answered before is where the files were moved to", async () => {
  renameSync(below("real"), below("moved"));
  await expect(insert(2)).rejects.toMatchObject({ name: "Unavailable" });
  // As they are for another process, which has no lock on them.
  cpSync(below("moved"), below("found"), { recursive: true });
  fatal = [];
  const again = await open("found");
  expect(await (await again.collection(ROWS)).get(1)).toMatchObject({ _id: 1 });
  await again.close();
  expect(fatal).toEqual([]);
});

test("a file that is not touched is not lost, however it is reached", async () => {
  renameSync(below("data"), below("link"));
  symlinkSync("link", below("data"));
  await insert(2);
  await store.close();
  expect(fatal).toEqual([]);
});
