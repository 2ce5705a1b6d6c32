import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { takeDirectory } from "@petstore/store/directory";
import { StoreLocked } from "@petstore/store/port";
import { encode } from "@petstore/store/rows";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { makeBackup, verifyBackup } from "./backup.ts";
import { copy, importFile, restore } from "./fill.ts";
import { addThings, nextIds, openOne, thingsIn } from "./fixtures/stores.ts";
import { linesOf, openLines, rowOf, writeLines } from "./lines.ts";
import { openDirectory, type Place, Refused } from "./places.ts";

let dir = "";
const at = (...names: string[]) => join(dir, ...names);
const place = (name: string) => ({ directory: at(name) }) satisfies Place;
const data = () => place("data");
const silent = { add() {}, [Symbol.dispose]() {} };
const plain = { replace: false, say() {} };
const backup = (name = "backup") => makeBackup(data(), at(name), {});
const never = async (promise: Promise<unknown>): Promise<Error> => {
  const error = await promise.then(
    () => expect.unreachable(),
    (error) => error,
  );
  expect(error).toBeInstanceOf(Refused);
  return error;
};

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "petstore-data-"));
  await addThings(data(), 5);
});
afterEach(() => rmSync(dir, { recursive: true }));

async function exportTo(name: string, from = data()): Promise<void> {
  using files = openDirectory(from.directory);
  await writeLines(at(name), files.records, "now");
}

describe("a backup", () => {
  test("has everything, tells how much that is, and leaves the store as it was", async () => {
    const before = await thingsIn(data());
    const { counts, files } = await backup();
    expect(counts).toMatchObject({ "pet/things": 5, "order/keys": 5 });
    expect(files.map(({ name }) => name)).toEqual(["category.db", "identity.db", "inventory.db", "order.db", "pet.db"]);
    expect(await verifyBackup(at("backup"))).toMatchObject({ counts });
    await restore(at("backup"), place("restored"), plain);
    expect(await thingsIn(place("restored"))).toEqual(before);
    expect(await thingsIn(data())).toEqual(before);
  });

  test("has what a killed process left in its log", async () => {
    const store = await openOne(data(), "pet");
    await store.nextId("late");
    // What a kill leaves: the file, and the log beside it.
    cpSync(at("data"), at("killed"), { recursive: true });
    await store.close();
    await makeBackup(place("killed"), at("backup"), {});
    await restore(at("backup"), place("restored"), plain);
    const restored = await openOne(place("restored"), "pet");
    expect(await restored.nextId("late")).toBeGreaterThan(1);
    await restored.close();
  });

  test("is not made where something is", async () => {
    await backup();
    expect((await never(backup())).message).toContain("backup holds something already");
  });

  test("is not made of files that don't belong together", async () => {
    await addThings(place("other"), 1);
    cpSync(at("other", "order.db"), at("data", "order.db"));
    await expect(backup()).rejects.toThrow(/order\.db belongs to the files of another DATA_DIR/);
    await expect(copy(data(), place("copy"), plain)).rejects.toThrow(
      /order\.db belongs to the files of another DATA_DIR/,
    );
    await expect(makeBackup(place("nowhere"), at("b"), {})).rejects.toThrow(/no data of a petstore/);
    expect(readdirSync(at("b"))).toEqual([]);
    await expect(verifyBackup(at("c"))).rejects.toThrow(/There is no /);
  });
});

describe("what is wrong with a backup is refused by name, and changes nothing", () => {
  const expectRefused = async (reason: RegExp) => {
    expect((await never(verifyBackup(at("backup")))).message).toMatch(reason);
    expect((await never(restore(at("backup"), place("restored"), plain))).message).toMatch(reason);
    expect(existsSync(at("restored"))).toBe(false);
  };
  const change = (name: string, work: (bytes: Buffer) => void) => {
    const path = at("backup", name);
    const bytes = readFileSync(path);
    work(bytes);
    writeFileSync(path, bytes);
  };
  beforeEach(() => backup());

  test.each(["category.db", "identity.db", "inventory.db", "order.db", "pet.db"])(
    "a byte of %s that is flipped",
    async (name) => {
      const place = readFileSync(at("backup", name)).length >> 1;
      change(name, (bytes) => void bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place));
      await expectRefused(new RegExp(`${name} is not the file that was backed up`));
    },
  );
  test("a byte of the manifest", async () => {
    change("manifest.json", (bytes) => void bytes.write("8", bytes.indexOf('"instant": "20') + 14));
    await expectRefused(/manifest\.json is damaged/);
  });
  test("an older order.db, from another backup", async () => {
    await addThings(data(), 1);
    await backup("later");
    cpSync(at("backup", "order.db"), at("later", "order.db"));
    rmSync(at("backup"), { recursive: true });
    cpSync(at("later"), at("backup"), { recursive: true });
    await expectRefused(/order\.db is not the file that was backed up: it is damaged, or of another backup/);
  });
  test("a file that is missing, and one that is too many", async () => {
    rmSync(at("backup", "pet.db"));
    await expectRefused(/pet\.db is missing/);
    writeFileSync(at("backup", "pet.db-wal"), "");
    await expectRefused(/pet\.db-wal is not a part of this backup/);
  });
  test("one that was cut short", async () => {
    rmSync(at("backup", "manifest.json"));
    await expectRefused(/cut short/);
  });
  test("one of a newer petstore", async () => {
    const { createHash } = await import("node:crypto");
    for (const [member, value] of [
      ["format", 2],
      ["engineFormat", 99],
    ] as const) {
      const { sha256: _, ...told } = JSON.parse(readFileSync(at("backup", "manifest.json"), "utf8"));
      const newer = { ...told, [member]: value };
      const sha256 = createHash("sha256").update(JSON.stringify(newer)).digest("hex");
      writeFileSync(at("backup", "manifest.json"), JSON.stringify({ ...newer, sha256 }));
      await expectRefused(/newer petstore/);
    }
  });
});

describe("a restore", () => {
  beforeEach(() => backup());

  test("gives no id again that was given since", async () => {
    await addThings(data(), 20);
    const given = await nextIds(data());
    await restore(at("backup"), data(), { ...plain, replace: true });
    const [pet = 0, category = 0, order = 0] = await nextIds(data());
    expect(Math.min(pet, category, order)).toBeGreaterThan(Math.max(...given));
  });
  test("replaces data only where that is asked for", async () => {
    await addThings(data(), 1);
    const now = await thingsIn(data());
    expect((await never(restore(at("backup"), data(), plain))).message).toMatch(/data holds data, which stays/);
    expect(await thingsIn(data())).toEqual(now);
    await restore(at("backup"), data(), { ...plain, replace: true });
    expect(await thingsIn(data())).not.toEqual(now);
    expect(readdirSync(at("data"))).not.toContain("incoming");
  });
  test("is refused where somebody uses the place: a launcher, or one service alone", async () => {
    const launcher = takeDirectory(at("data"), "a test");
    await expect(restore(at("backup"), data(), { ...plain, replace: true })).rejects.toBeInstanceOf(StoreLocked);
    launcher[Symbol.dispose]();
    const service = await openOne(data(), "order");
    await expect(restore(at("backup"), data(), { ...plain, replace: true })).rejects.toBeInstanceOf(StoreLocked);
    await service.close();
  });
  test("that dies while files are put in place leaves none that start among those of before", async () => {
    cpSync(at("data"), at("half"), { recursive: true });
    await restore(at("backup"), place("restored"), plain);
    cpSync(at("restored", "identity.db"), at("half", "identity.db"));
    await expect(openOne(place("half"), "pet")).rejects.toThrow(/belongs to the files of another DATA_DIR/);
  });
});

describe("an export", () => {
  test("is imported with every record as it was", async () => {
    await exportTo("all.jsonl");
    await importFile(at("all.jsonl"), place("imported"), plain);
    expect(await thingsIn(place("imported"))).toEqual(await thingsIn(data()));
    expect((await nextIds(place("imported")))[0]).toBeGreaterThan(1_000_000);
  });
  test("that is damaged, cut short, newer or something else is refused", async () => {
    await exportTo("all.jsonl");
    const whole = readFileSync(at("all.jsonl"), "utf8");
    const lines = whole.trimEnd().split("\n");
    const refusal = async (text: string) => {
      writeFileSync(at("wrong.jsonl"), text);
      const error = await never(importFile(at("wrong.jsonl"), place("imported"), plain));
      expect(existsSync(at("imported"))).toBe(false);
      return error.message;
    };
    expect(await refusal(whole.replace("pet é", "pet è"))).toMatch(/damaged/);
    expect(await refusal(lines.toSpliced(4, 1).join("\n"))).toMatch(/damaged/);
    expect(await refusal(lines.toSpliced(4, 1, "{}").join("\n"))).toMatch(/damaged: line 5/);
    expect(await refusal(lines.slice(0, -1).join("\n"))).toMatch(/cut short/);
    expect(await refusal(whole.replace('"format":1', '"format":2'))).toMatch(/newer petstore/);
    expect(await refusal("")).toMatch(/cut short/);
    expect(await refusal("{}\n")).toMatch(/no export/);
  });
  test("has documents that can't be read, or are of another id, which are imported as they are", async () => {
    const { DatabaseSync } = await import("node:sqlite");
    const write = new DatabaseSync(at("data", "pet.db"));
    write.prepare("UPDATE things SET doc = ? WHERE _id = 3").run(Uint8Array.of(1, 2, 3));
    write.exec("UPDATE things SET doc = (SELECT doc FROM things WHERE _id = 1) WHERE _id = 5");
    const documents = write.prepare("SELECT _id, doc FROM things WHERE _id IN (3, 5)").all();
    write.close();
    await exportTo("all.jsonl");
    await importFile(at("all.jsonl"), place("imported"), plain);
    const read = new DatabaseSync(at("imported", "pet.db"));
    expect(read.prepare("SELECT _id, doc FROM things WHERE _id IN (3, 5)").all()).toEqual(documents);
    read.close();
  });
});

describe("a copy", () => {
  test("has every record and number as it was", async () => {
    const records = await copy(data(), place("copy"), plain);
    expect(records).toBe(4 * (5 + 5));
    expect(await thingsIn(place("copy"))).toEqual(await thingsIn(data()));
    expect(await nextIds(place("copy"))).toEqual(await nextIds(data()));
  });
  test("goes on where it stopped, and no petstore starts with a part of it", async () => {
    const source = await sourceOf(data());
    const { openTarget } = await import("./targets.ts");
    const by = `a copy of ${at("data")}`;
    {
      await using target = await openTarget(place("copy"), { ...plain, by });
      const records = target.records.get("pet");
      for await (const lines of source.lines()) {
        const [first] = lines;
        if (!first || !("doc" in first) || first.collection !== "things") continue;
        await records?.add("things", [rowOf(first)]);
        break;
      }
    }
    source.close();
    expect(readdirSync(at("copy"))).not.toContain("pet.db");
    await expect(openOne(place("copy"), "pet")).rejects.toThrow(
      /copy is being filled by npm run data, .* the same command/,
    );
    expect(
      (await never(copy(data(), place("copy"), plain).then(() => copy(data(), place("copy"), plain)))).message,
    ).toMatch(/holds data/);
    expect(await thingsIn(place("copy"))).toEqual(await thingsIn(data()));
  });
  test("that was begun from elsewhere is not gone on with", async () => {
    const { openTarget } = await import("./targets.ts");
    await using _ = await openTarget(place("copy"), { ...plain, by: "something else" });
    await _[Symbol.asyncDispose]();
    expect((await never(copy(data(), place("copy"), plain))).message).toMatch(/begun to be filled by something else/);
    await copy(data(), place("copy"), { ...plain, replace: true });
  });
  test("that was cut short while its files were put in place is begun anew", async () => {
    await copy(data(), place("half"), plain);
    cpSync(at("half"), at("copy", "incoming"), { recursive: true });
    rmSync(at("copy", "incoming", "identity.db"));
    await copy(data(), place("copy"), plain);
    expect(await thingsIn(place("copy"))).toEqual(await thingsIn(data()));
  });
  test("goes into no directory that somebody else has put in its way", async () => {
    mkdirSync(at("copy", "elsewhere"), { recursive: true });
    symlinkSync("elsewhere", at("copy", "incoming"));
    expect((await never(copy(data(), place("copy"), plain))).message).toMatch(/incoming is another user's/);
    rmSync(at("copy", "incoming"));
    mkdirSync(at("copy", "incoming"));
    const uid = vi.spyOn(process, "getuid").mockReturnValue(statSync(at("copy")).uid + 1);
    expect((await never(copy(data(), place("copy"), plain))).message).toMatch(/incoming is another user's/);
    uid.mockRestore();
    await copy(data(), place("copy"), plain);
  });
  test.skipIf(process.getuid?.() !== 0)(
    "leaves all to the owner of the directory (only root can try that)",
    async () => {
      mkdirSync(at("copy"));
      chownSync(at("copy"), 4711, 4711);
      await copy(data(), place("copy"), plain);
      for (const name of readdirSync(at("copy"))) expect([name, statSync(at("copy", name)).uid]).toEqual([name, 4711]);
    },
  );
  test("of another state than that of its beginning is found out, and begun anew the next time", async () => {
    const { openTarget } = await import("./targets.ts");
    {
      await using target = await openTarget(place("copy"), { ...plain, by: `a copy of ${at("data")}` });
      await target.records.get("pet")?.add("things", [{ _id: 1, doc: encode({ _id: 1, rev: 1, name: "other" }) }]);
    }
    expect((await never(copy(data(), place("copy"), plain))).message).toMatch(/differs at pet\/things\/1\./);
    await copy(data(), place("copy"), plain);
    expect(await thingsIn(place("copy"))).toEqual(await thingsIn(data()));
  });
  test("is refused while the source is in use", async () => {
    const service = await openOne(data(), "order");
    await expect(copy(data(), place("copy"), plain)).rejects.toBeInstanceOf(StoreLocked);
    await service.close();
  });
  test("that lacks a record is not taken for whole", async () => {
    const { prove } = await import("./fill.ts");
    await copy(data(), place("copy"), plain);
    const { DatabaseSync } = await import("node:sqlite");
    const lost = new DatabaseSync(at("copy", "order.db"));
    lost.exec("DELETE FROM things WHERE _id = 4");
    lost.close();
    const [those, these] = [await sourceOf(data()), await sourceOf(place("copy"))];
    expect((await never(prove(those, these, silent))).message).toMatch(/differs at order\/things\/4\./);
    those.close();
    these.close();
  });
});

async function sourceOf({ directory }: { directory: string }) {
  const files = openDirectory(directory);
  return { ...(await linesOf(files.records)), close: () => files[Symbol.dispose]() };
}

test("an export that is read twice is the same", async () => {
  await exportTo("all.jsonl");
  const { total } = await openLines(at("all.jsonl"));
  expect(total).toBe(44);
});
