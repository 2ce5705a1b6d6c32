/** The sync that ends each commit is the store's own, off the event loop: it has to be of the right file, and waited for. */
import { mkdirSync, readFileSync, renameSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as tick } from "node:timers/promises";
import { realTime } from "@petstore/runtime/clock";
import { beforeEach, expect, test } from "vitest";
import { directoryForEach } from "../fixtures/directory.ts";
import { silent } from "../fixtures/silent.ts";
import { type Doc, put, schema } from "../port.ts";
import { openFile, openLog } from "./file.ts";
import { embeddedStore } from "./sqlite.ts";

const ROWS = schema<Doc & { readonly filler: string }>()("rows", {});

const dir = directoryForEach();
let path: string;
beforeEach(() => {
  path = join(dir.path, "pet.db");
});

const options = { ...realTime, clock: () => 0, log: silent, onFatal: () => expect.unreachable() };

test("a change is answered when the log was synced, and the log is synced after each commit", async () => {
  const db = openFile(path);
  const log = openLog(db);
  const contents: Buffer[] = [];
  const held: (() => void)[] = [];
  let isHeld = false;
  const sync = async () => {
    contents.push(readFileSync(`${path}-wal`));
    if (isHeld) await new Promise<void>((resolve) => held.push(resolve));
    await log.sync();
  };
  const store = embeddedStore(db, path, options, { ...log, sync });
  const rows = await store.collection(ROWS);
  const before = contents.length;
  isHeld = true;
  let answered = false;
  const change = rows.update(1, () => put({ _id: 1, filler: "x" }, 0)).then(() => (answered = true));
  while (held.length === 0) await tick();
  expect(contents.length).toBe(before + 1);
  expect(contents[before]).not.toEqual(contents[before - 1]);
  await tick();
  expect(answered).toBe(false);
  isHeld = false;
  held[0]?.();
  await change;
  await store.close();
});

test("the log is the same file for as long as the store is open, and SQLite still syncs it before a checkpoint", async () => {
  const db = openFile(path);
  const store = embeddedStore(db, path, options);
  const { ino } = statSync(`${path}-wal`);
  const rows = await store.collection(ROWS);
  // More than the thousand pages after which SQLite begins the log anew.
  for (let i = 0; i < 150; i++) await rows.update(i, () => put({ _id: i, filler: "x".repeat(40_000) }, 0));
  expect(statSync(`${path}-wal`).ino).toBe(ino);
  expect(statSync(path).size).toBeGreaterThan(2_000_000);
  expect(db.prepare("PRAGMA synchronous").get()).toEqual({ synchronous: 1 });
  expect(db.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
  await store.close();
});

test("of a file behind a symbolic link it is the log beside the file, whatever lies beside the link", async () => {
  await embeddedStore(openFile(path), path, options).close();
  const elsewhere = join(dir.path, "elsewhere");
  mkdirSync(elsewhere);
  renameSync(path, join(elsewhere, "pet.db"));
  symlinkSync(join(elsewhere, "pet.db"), path);
  await embeddedStore(openFile(path), path, options).close();
  // It could not be opened for writing, as a log that was left there could.
  mkdirSync(`${path}-wal`);
  await embeddedStore(openFile(path), path, options).close();
});
