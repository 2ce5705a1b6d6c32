import { setImmediate as tick } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { MAX_FOLD_MS } from "../document/fold.ts";
import { Unavailable } from "../port.ts";
import { type GroupCommitOptions, groupCommit } from "./group-commit.ts";

const full = Object.assign(new Error("database or disk is full"), { errcode: 13 });
const disk = new Error("disk I/O error");

/** A database that writes down what it is told, and fails at what it is told to fail at. */
function scribe(options: Partial<GroupCommitOptions> = {}) {
  const log: string[] = [];
  const failing = new Map<string, Error>();
  const db = {
    isTransaction: false,
    exec(sql: string) {
      log.push(sql);
      const error = failing.get(sql);
      if (error) throw error;
      if (sql.startsWith("BEGIN")) db.isTransaction = true;
      if (sql === "COMMIT" || sql === "ROLLBACK") db.isTransaction = false;
    },
  };
  const rooms: string[] = [];
  const fatal = vi.fn<(error: unknown) => void>();
  const commit = groupCommit(db, {
    clock: () => 0,
    sync: async () => {},
    onRoom: (room) => rooms.push(room),
    onFatal: fatal,
    ...options,
  });
  const write = (name: string) => commit.write((batch) => batch.write(() => db.exec(name)));
  return { log, failing, rooms, fatal, commit, write };
}
const never = (error: unknown): never => {
  throw error;
};
const reason = (promise: Promise<unknown>) =>
  promise.then(
    () => "answered",
    (error: unknown) => error,
  );

describe("group commit", () => {
  test("the writes of one tick share one transaction, those of the next have their own", async () => {
    const { log, write } = scribe();
    await Promise.all([write("a"), write("b")]);
    await write("c");
    expect(log).toEqual(["BEGIN IMMEDIATE", "a", "b", "COMMIT", "BEGIN IMMEDIATE", "c", "COMMIT"]);
  });

  test("a statement that several steps ask for runs once", async () => {
    const { log, commit } = scribe();
    const statement = () => void log.push("statement");
    await Promise.all([1, 2, 3].map(() => commit.write((batch) => batch.write(statement))));
    expect(log).toEqual(["BEGIN IMMEDIATE", "statement", "COMMIT"]);
  });

  test("nothing is answered or thrown before the commit", async () => {
    const { log, commit, write } = scribe();
    const said = (name: string) => () => log.push(name);
    await Promise.all([
      write("statement").then(said("write")),
      commit.write(() => 1).then(said("keep")),
      commit.write(() => never(new Error("refused"))).catch(said("refusal")),
    ]);
    expect(log.slice(0, 3)).toEqual(["BEGIN IMMEDIATE", "statement", "COMMIT"]);
    expect(log.slice(3).sort()).toEqual(["keep", "refusal", "write"]);
  });

  test("what was made is told after the sync, in the order of the statements, before anything is answered", async () => {
    const synced = Promise.withResolvers<void>();
    const { log, commit } = scribe({ sync: () => synced.promise });
    const write = (name: string) =>
      commit.write((batch) =>
        batch.write(
          () => log.push(name),
          () => log.push(`${name} made`),
        ),
      );
    const answered = Promise.all([write("a"), write("b")].map((answer) => answer.then(() => log.push("answered"))));
    await tick();
    await tick();
    expect(log.at(-1)).toBe("COMMIT");
    synced.resolve();
    await answered;
    expect(log.slice(-4)).toEqual(["a made", "b made", "answered", "answered"]);
  });

  test("what found no room, or failed, is not told", async () => {
    for (const error of [full, disk]) {
      const { log, failing, commit } = scribe();
      failing.set("COMMIT", error);
      const made = () => log.push("made");
      await reason(commit.write((batch) => batch.write(() => {}, made)));
      expect(log).not.toContain("made");
    }
  });

  test("a read needs no transaction and no tick, and a step that changes nothing needs no transaction", async () => {
    const { log, commit } = scribe();
    void commit.write(() => log.push("step"));
    expect(await commit.read(() => 7)).toBe(7);
    expect(log).toEqual([]);
    expect(await commit.write(() => 8)).toBe(8);
    expect(log).toEqual(["step"]);
  });

  test("steps that take long are committed in parts, so that others get their turn between them", async () => {
    let now = 0;
    const { log, commit } = scribe({ clock: () => now });
    const slow = (ms: number) =>
      commit.write((batch) => {
        now += ms;
        batch.write(() => log.push("write"));
      });
    const steps = Array.from({ length: 7 }, () => slow(MAX_FOLD_MS / 3));
    const other = new Promise((resolve) => setImmediate(() => resolve(log.push("another's turn"))));
    await Promise.all([...steps, other]);
    const part = (count: number) => ["BEGIN IMMEDIATE", ...Array<string>(count).fill("write"), "COMMIT"];
    expect(log).toEqual([...part(3), "another's turn", ...part(3), ...part(1)]);
    log.length = 0;
    await Promise.all([slow(5 * MAX_FOLD_MS), slow(0)]);
    expect(log).toEqual([...part(1), ...part(1)]);
  });

  test("a failed commit: writes in doubt, others refused, fatal once, nothing afterwards", async () => {
    const { log, failing, fatal, rooms, commit, write } = scribe();
    failing.set("COMMIT", disk);
    const written = reason(write("a"));
    const kept = reason(commit.write(() => 1));
    const refusal = reason(commit.write(() => never(new Error("refused"))));
    expect(await written).toBeInstanceOf(Unavailable);
    expect(await written).toMatchObject({ inDoubt: true, cause: disk });
    expect(await kept).toMatchObject({ name: "Unavailable", inDoubt: false });
    expect(await refusal).toMatchObject({ name: "Unavailable", inDoubt: false });

    failing.clear();
    const before = log.length;
    expect(await reason(commit.read(() => 1))).toMatchObject({ name: "Unavailable", inDoubt: false, cause: disk });
    expect(await reason(write("b"))).toMatchObject({ inDoubt: false });
    await commit.stop();
    expect(log.slice(before)).toEqual([]);
    expect(fatal.mock.calls).toEqual([[disk]]);
    expect(rooms).toEqual([]);
  });

  test("a statement that fails takes its batch along, and those that wait: nothing of it is committed", async () => {
    let now = 0;
    const { log, failing, fatal, commit, write } = scribe({ clock: () => now });
    failing.set("b", disk);
    const neighbours = [write("a"), write("b"), commit.write(() => (now += MAX_FOLD_MS))].map(reason);
    const waiting = reason(write("c"));
    expect(await Promise.all(neighbours)).toMatchObject([{ inDoubt: true }, { inDoubt: true }, { inDoubt: false }]);
    expect(await waiting).toMatchObject({ name: "Unavailable", inDoubt: false, cause: disk });
    expect(log).toEqual(["BEGIN IMMEDIATE", "a", "b"]);
    expect(fatal.mock.calls).toEqual([[disk]]);
  });

  test.each(["a", "COMMIT"])("no room for %s: the batch has no effect, and that is certain", async (where) => {
    const { log, failing, fatal, rooms, commit, write } = scribe();
    failing.set(where, full);
    for (let i = 0; i < 2; i++) {
      const [written, kept] = await Promise.all([write("a"), commit.write(() => 1)].map(reason));
      expect(written).toMatchObject({ name: "Unavailable", inDoubt: false, cause: full });
      expect(kept).toMatchObject({ name: "Unavailable", inDoubt: false, cause: full });
      expect(log.at(-1)).toBe("ROLLBACK");
    }
    expect(await commit.read(() => 7)).toBe(7);
    expect(rooms).toEqual(["none"]);

    failing.clear();
    await write("a");
    await write("b");
    expect(rooms).toEqual(["none", "again"]);
    expect(fatal).not.toHaveBeenCalled();
  });

  test("nothing is answered, and no read that saw it, before it is on disk", async () => {
    const { promise: synced, resolve: release } = Promise.withResolvers<void>();
    const { log, commit, write } = scribe({ sync: () => synced });
    const said = (name: string) => () => log.push(name);
    const first = Promise.all([write("a").then(said("write")), commit.write(() => 1).then(said("keep"))]);
    while (!log.includes("COMMIT")) await tick();
    const read = commit.read(() => log.push("read runs")).then(said("read"));
    const second = write("b").then(said("next write"));
    await tick();
    await tick();
    expect(log).toEqual(["BEGIN IMMEDIATE", "a", "COMMIT", "read runs"]);
    release();
    await Promise.all([first, read, second]);
    const done = ["read", "write", "keep", "BEGIN IMMEDIATE", "b", "COMMIT", "next write"];
    expect(log.slice(4).sort()).toEqual(done.sort());
    expect(log.slice(-4)).toEqual(["BEGIN IMMEDIATE", "b", "COMMIT", "next write"]);
  });

  test("a failed sync: writes in doubt, reads that saw them refused, fatal once, nothing afterwards", async () => {
    const { promise: synced, reject: failSync } = Promise.withResolvers<void>();
    const { log, fatal, commit, write } = scribe({ sync: () => synced });
    const written = reason(write("a"));
    const kept = reason(commit.write(() => 1));
    while (!log.includes("COMMIT")) await tick();
    const read = reason(commit.read(() => 1));
    const waiting = reason(write("b"));
    failSync(disk);
    expect(await written).toMatchObject({ name: "Unavailable", inDoubt: true, cause: disk });
    for (const refused of [kept, read, waiting]) {
      expect(await refused).toMatchObject({ name: "Unavailable", inDoubt: false, cause: disk });
    }
    expect(await reason(commit.read(() => 1))).toMatchObject({ name: "Unavailable" });
    expect(log).toEqual(["BEGIN IMMEDIATE", "a", "COMMIT"]);
    expect(fatal.mock.calls).toEqual([[disk]]);
  });

  test("no room for the sync of what is committed: fatal, and in doubt", async () => {
    const { log, fatal, commit, write } = scribe({ sync: async () => never(full) });
    expect(await reason(write("a"))).toMatchObject({ name: "Unavailable", inDoubt: true, cause: full });
    expect(await reason(commit.read(() => 1))).toMatchObject({ name: "Unavailable", inDoubt: false });
    expect(log).toEqual(["BEGIN IMMEDIATE", "a", "COMMIT"]);
    expect(fatal.mock.calls).toEqual([[full]]);
  });

  test("no room, and no way back: fatal", async () => {
    const { failing, fatal, write } = scribe();
    failing.set("COMMIT", full).set("ROLLBACK", disk);
    expect(await reason(write("a"))).toMatchObject({ inDoubt: true, cause: full });
    expect(fatal.mock.calls).toEqual([[full]]);
  });

  test("stopping waits for all that was asked before", async () => {
    let now = 0;
    const { commit } = scribe({ clock: () => now });
    const steps = [1, 2, 3].map(() => commit.write(() => (now += MAX_FOLD_MS)));
    await commit.stop();
    expect(await Promise.all(steps)).toEqual([1, 2, 3].map((i) => i * MAX_FOLD_MS));
    expect(await reason(commit.write(() => 1))).toMatchObject({ name: "Unavailable", inDoubt: false });
  });
});
