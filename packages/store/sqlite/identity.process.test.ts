/** The files of one DATA_DIR: they carry one identity, are not mixed, and do not come back empty. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { realTime } from "@petstore/runtime/clock";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { directoryForEach } from "../fixtures/directory.ts";
import { silent } from "../fixtures/silent.ts";
import { type Doc, put, schema } from "../port.ts";
import { openFile } from "./file.ts";
import { openEmbedded } from "./sqlite.ts";

const SERVICES = ["pet", "category", "order", "inventory"];
const ROWS = schema<Doc & { readonly _id: number }>()("rows", {});

const dir = directoryForEach();

const file = (service: string, of = "data") => join(dir.path, of, `${service}.db`);
const remove = (path: string) => {
  for (const end of ["", "-wal", "-shm", "-journal"]) rmSync(path + end, { force: true });
};
const open = (service: string, of?: string) =>
  openEmbedded(file(service, of), { ...realTime, clock: () => 0, log: silent, onFatal: () => expect.unreachable() });

/** Starts services one after the other, and writes a row. */
async function start(services: readonly string[], of?: string): Promise<void> {
  for (const service of services) {
    const store = await open(service, of);
    const rows = await store.collection(ROWS);
    await rows.update(1, () => put({ _id: 1 }, undefined));
    await store.close();
  }
}
const refusal = (service: string) =>
  open(service).then(
    () => expect.unreachable(),
    (error: Error) => error,
  );
const expectRefusal = async (service: string, ...words: readonly string[]) => {
  const { name, message } = await refusal(service);
  expect(name).toBe("Corrupt");
  for (const word of [file(service), ...words, "backup", "DATA_DIR"]) expect(message).toContain(word);
  expect(message).not.toContain("\n");
};
const inFile = (path: string, sql: string) => {
  using db = new DatabaseSync(path);
  db.exec(sql);
};
const identityOf = (path: string, table: string) => {
  using db = new DatabaseSync(path);
  return db.prepare(`SELECT id FROM "${table}"`).get()?.id;
};

test("services start in any order, alone and again, and their files carry one identity", async () => {
  await start(["order"]);
  await start(["pet", "order", "inventory", "category"]);
  await start(SERVICES);
  const ids = SERVICES.map((service) => identityOf(file(service), "$identity"));
  expect(new Set([...ids, identityOf(join(dir.path, "data", "identity.db"), "identity")]).size).toBe(1);
  await start(SERVICES, "other");
  expect(identityOf(file("pet", "other"), "$identity")).not.toBe(ids[0]);
});

test("processes that start at the same time agree on it", async () => {
  const script = `const { openFile } = await import(${JSON.stringify(join(import.meta.dirname, "file.ts"))});
    openFile(process.argv[1]).close();`;
  const run = (service: string) =>
    promisify(execFile)(process.execPath, ["--input-type=module", "-e", script, file(service)]);
  await Promise.all(SERVICES.map(run));
  expect(new Set(SERVICES.map((service) => identityOf(file(service), "$identity"))).size).toBe(1);
});

test("of two processes that open the same new file at the same time, one gets it", { timeout: 120_000 }, async () => {
  const script = `const { openFile } = await import(${JSON.stringify(join(import.meta.dirname, "file.ts"))});
    let db;
    process.on("message", ({ path, at }) => {
      db?.close();
      db = undefined;
      while (Date.now() < at);
      try {
        db = openFile(path);
        process.send("open");
      } catch ({ name }) {
        process.send(name);
      }
    });
    process.send("up");`;
  const children = [1, 2].map(() =>
    spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "inherit", "inherit", "ipc"] }),
  );
  onTestFinished(() => void children.map((child) => child.kill()));
  const answers = () => Promise.all(children.map(async (child) => (await once(child, "message"))[0]));
  await answers();
  for (let i = 0; i < 100; i++) {
    const answered = answers();
    for (const child of children) child.send({ path: file("pet", `${i}`), at: Date.now() + 10 });
    expect((await answered).toSorted()).toEqual(["StoreLocked", "open"]);
  }
});

describe("refused, again and again, and nothing is made of it", () => {
  beforeEach(() => start(SERVICES));
  test.each([
    ["a file that is gone", "gone", () => remove(file("pet"))],
    [
      "an empty file",
      "empty",
      () => {
        remove(file("pet"));
        writeFileSync(file("pet"), "");
      },
    ],
    [
      "a file that was emptied",
      "empty",
      () => {
        remove(`${file("pet")}-wal`);
        truncateSync(file("pet"), 0);
      },
    ],
    ["no identity beside it", "identity.db that is not there", () => remove(join(dir.path, "data", "identity.db"))],
  ])("%s", async (_, word, spoil) => {
    spoil();
    for (let i = 0; i < 2; i++) await expectRefusal("pet", word);
  });

  test("a file of another directory, or one without identity in the place of another", async () => {
    await start(SERVICES, "other");
    remove(file("pet"));
    cpSync(file("pet", "other"), file("pet"));
    for (let i = 0; i < 2; i++) await expectRefusal("pet", "another DATA_DIR", "identity.db");
    inFile(file("pet"), `DROP TABLE "$identity"`);
    await expectRefusal("pet");
    await start(["order"]);
  });

  test("an older copy of one file, also when it was opened only once since", async () => {
    const backup = join(dir.path, "pet.backup");
    cpSync(file("pet"), backup);
    await start(["pet"]);
    cpSync(backup, file("pet"));
    for (let i = 0; i < 2; i++) await expectRefusal("pet", "is older than the files beside it");
    await start(["order"]);
  });

  test("an older identity", async () => {
    const backup = join(dir.path, "identity.backup");
    cpSync(join(dir.path, "data", "identity.db"), backup);
    for (let i = 0; i < 2; i++) await start(["pet"]);
    cpSync(backup, join(dir.path, "data", "identity.db"));
    for (let i = 0; i < 2; i++) await expectRefusal("pet", "identity.db is older than");
  });

  test("an identity that can't be read is told by its own name", async () => {
    writeFileSync(join(dir.path, "data", "identity.db"), "not a database at all, but long enough ".repeat(100));
    expect((await refusal("pet")).message).toMatch(/identity\.db is damaged/);
  });
});

test("a copy of the whole directory is a backup", async () => {
  await start(SERVICES);
  cpSync(join(dir.path, "data"), join(dir.path, "backup"), { recursive: true });
  await start(SERVICES);
  rmSync(join(dir.path, "data"), { recursive: true });
  cpSync(join(dir.path, "backup"), join(dir.path, "data"), { recursive: true });
  for (const service of SERVICES) {
    const store = await open(service);
    expect(await (await store.collection(ROWS)).get(1)).toEqual({ _id: 1, rev: 1 });
    await store.close();
  }
});

describe("a start that died between its steps does not stand in the way of the next", () => {
  test("the identity is there, the file is not, or it is empty", async () => {
    await start(["order"]);
    await start(["pet"]);
    inFile(join(dir.path, "data", "identity.db"), "DELETE FROM openings WHERE name = 'pet.db'");
    remove(file("pet"));
    await start(["pet"]);
    inFile(join(dir.path, "data", "identity.db"), "DELETE FROM openings WHERE name = 'pet.db'");
    remove(file("pet"));
    writeFileSync(file("pet"), "");
    await start(["pet"]);
  });
  test("the file carries the identity and is not named yet", async () => {
    await start(["pet"]);
    inFile(join(dir.path, "data", "identity.db"), "DELETE FROM openings");
    await start(["pet"]);
    remove(file("pet"));
    await expectRefusal("pet", "gone");
  });
  test("the file carries a number that is not recorded yet", async () => {
    await start(["pet"]);
    const before = join(dir.path, "before.db");
    for (let time = 0; time < 3; time++) {
      cpSync(join(dir.path, "data", "identity.db"), before);
      await start(["pet"]);
      cpSync(before, join(dir.path, "data", "identity.db"));
    }
    await start(["pet"]);
  });

  test("nothing but an empty identity", async () => {
    await start(["pet"]);
    rmSync(join(dir.path, "data"), { recursive: true });
    openFile(file("order")).close();
    remove(file("order"));
    writeFileSync(join(dir.path, "data", "identity.db"), "");
    await start(SERVICES);
  });
});

test("data from before there were identities takes one on", async () => {
  await start(SERVICES);
  for (const service of SERVICES) inFile(file(service), `DROP TABLE "$identity"`);
  remove(join(dir.path, "data", "identity.db"));
  await start(SERVICES);
  const store = await open("pet");
  expect(await (await store.collection(ROWS)).get(1)).toEqual({ _id: 1, rev: 2 });
  await store.close();
});
