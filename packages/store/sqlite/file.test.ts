import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { realTime } from "@petstore/runtime/clock";
import { Binary, serialize } from "bson";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { directoryForEach } from "../fixtures/directory.ts";
import { silent } from "../fixtures/silent.ts";
import { openStore } from "../open.ts";
import { type Doc, keep, put, schema, UnusableServer } from "../port.ts";
import { readFailure } from "./failures.ts";
import { openFile } from "./file.ts";
import { openEmbedded } from "./sqlite.ts";

const PETS = schema<Doc & { readonly name?: string }>()("pets", { name: ["name"] });

const dir = directoryForEach();
let path: string;
beforeEach(() => {
  path = join(dir.path, "data", "pet.db");
  mkdirSync(join(dir.path, "data"));
});

const options = { ...realTime, clock: () => 0, log: silent, onFatal: () => expect.unreachable() };
const open = () => openEmbedded(path, options);

function inFile(change: (db: DatabaseSync) => void): void {
  const db = new DatabaseSync(path);
  change(db);
  db.close();
}

describe("opening says what is wrong and what to do", () => {
  const expectRefusal = async (name: string, ...words: readonly string[]) => {
    const error = await open().then(
      () => expect.unreachable(),
      (reason: Error) => reason,
    );
    expect(error).toMatchObject({ name });
    for (const word of [...words, "DATA_DIR"]) expect(error.message).toContain(word);
  };

  test("the directory is made when it is missing", async () => {
    path = join(dir.path, "new", "deep", "pet.db");
    await (await open()).close();
  });

  test("in use", async () => {
    const store = await open();
    await expectRefusal("StoreLocked", join(dir.path, "data"), "pet.db", "in use by another process", "stop");
    await store.close();
    await (await open()).close();
  });

  test("written by a newer petstore", async () => {
    await (await open()).close();
    inFile((db) => db.exec("PRAGMA user_version = 3"));
    await expectRefusal("UnsupportedFormat", path, "newer petstore", "upgrade");
  });

  test("written by an older petstore", async () => {
    await (await open()).close();
    inFile((db) => db.exec("PRAGMA user_version = 1"));
    await expectRefusal("UnsupportedFormat", path, "older petstore", "another directory");
  });

  test("not a database", async () => {
    writeFileSync(path, "not a database at all, but long enough to be looked at ".repeat(100));
    await expectRefusal("Corrupt", path, "not a database", "backup");
  });

  test("another program's database, which stays as it is", async () => {
    inFile((db) => db.exec("CREATE TABLE theirs (x)"));
    await expectRefusal("Corrupt", path, "another program");
    inFile((db) => expect(db.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "delete" }));
  });

  test("a directory where the file should be, and a file where the directory should be", async () => {
    mkdirSync(path);
    await expectRefusal("NotWritable", path);
    writeFileSync(join(dir.path, "file"), "");
    path = join(dir.path, "file", "pet.db");
    await expectRefusal("NotWritable", path);
  });
});

test("every commit is synced to the disk, and nobody else can have the file", () => {
  const db = openFile(path);
  const value = (name: string) => Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0];
  expect(value("journal_mode")).toBe("wal");
  expect(value("synchronous")).toBe(2);
  expect(value("fullfsync")).toBe(1);
  expect(value("locking_mode")).toBe("exclusive");
  db.close();
});

describe("a damaged document is Corrupt, and harms no other", () => {
  test.each([
    ["unreadable bytes", Uint8Array.of(9, 9, 9)],
    ["another document", serialize({ _id: 2, rev: 1 })],
    ["a text that is not UTF-8", serialize({ _id: 1, rev: 1, x: new Binary(Uint8Array.of(1)) }).fill(0xff, 20, 30)],
  ])("%s", async (_, bytes) => {
    const store = await open();
    const pets = await store.collection(PETS);
    for (const _id of [1, 2]) await pets.update(_id, () => put({ _id, name: "Rex" }, 0));
    await store.close();
    inFile((db) => db.prepare("UPDATE pets SET doc = ? WHERE _id = 1").run(bytes));

    const again = await open();
    const damaged = await again.collection(PETS);
    const corrupt = { name: "Corrupt" };
    await expect(damaged.get(1)).rejects.toMatchObject(corrupt);
    expect(await damaged.getMany([2, 1])).toMatchObject([{ _id: 2 }]);
    expect(await damaged.list({ limit: 9, order: "asc" })).toMatchObject([{ _id: 2 }]);
    expect(await damaged.list({ where: { name: "Rex" }, limit: 1, order: "asc" })).toMatchObject([{ _id: 2 }]);
    await expect(damaged.update(1, () => put({ _id: 1 }, 0))).rejects.toMatchObject(corrupt);
    expect(await damaged.update(2, (doc) => keep(doc?.name))).toBe("Rex");
    await again.close();
  });
});

describe("a file that can't be read", () => {
  test("is Corrupt when its pages are damaged, and says which file", async () => {
    const store = await open();
    const pets = await store.collection(PETS);
    const ids = Array.from({ length: 500 }, (_, i) => i);
    await Promise.all(ids.map((_id) => pets.update(_id, () => put({ _id, name: `${_id}`.repeat(100) }, 0))));
    await store.close();
    writeFileSync(path, readFileSync(path).fill(0xff, 8 * 4096));

    const again = await open();
    const damaged = await again.collection(PETS);
    const reading = damaged.list({ limit: 500, order: "asc" });
    const corrupt = { name: "Corrupt", message: expect.stringContaining(path) };
    await expect(reading).rejects.toMatchObject(corrupt);
    await again.close();

    const third = await open();
    const indexing = third.collection(schema<Doc & { name?: string }>()("pets", { ...PETS.indexes, rev: ["rev"] }));
    await expect(indexing).rejects.toMatchObject(corrupt);
    await third.close();
  });

  test("is Unavailable when reading failed, without a doubt", () => {
    const failure = Object.assign(new Error("disk I/O error"), { code: "ERR_SQLITE_ERROR", errcode: 266 });
    expect(readFailure(failure, path)).toMatchObject({ name: "Unavailable", inDoubt: false, cause: failure });
  });
});

describe("openStore", () => {
  const storeOptions = { ...realTime, ...options };

  test("keeps each service's store in a file of its own below DATA_DIR", async () => {
    const stores = await Promise.all(
      ["pet", "order"].map((service) => openStore({ service, dataDir: dir.path }, storeOptions)),
    );
    expect(readdirSync(dir.path).filter((name) => name.endsWith(".db"))).toEqual(["identity.db", "order.db", "pet.db"]);
    expect(await Promise.all(stores.map((store) => store.nextId("ids")))).toEqual([1, 1]);
    for (const store of stores) await store.close();
  });

  test("takes no directory for a URI, and finds it again", async () => {
    const before = process.cwd();
    process.chdir(dir.path);
    onTestFinished(() => process.chdir(before));
    for (let i = 1; i <= 2; i++) {
      const store = await openStore({ service: "pet", dataDir: "file:new" }, storeOptions);
      expect(await store.nextId("ids")).toBe(i);
      await store.close();
    }
    expect(readdirSync(dir.path)).toEqual(["data", "file:new"]);
    expect(readdirSync(join(dir.path, "file:new"))).toContain("pet.db");
  });

  test("keeps them in MongoDB when there is a URI", async () => {
    const config = { service: "pet", dataDir: dir.path, mongodbUri: { reveal: () => "mongodb://me:hunter2@:1/" } };
    const error = await openStore(config, storeOptions).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UnusableServer);
    expect(`${error}`).toMatch(/The connection string is not a connection string(?!.*hunter2)/);
  });
});
