import { describe, expect, test, vi } from "vitest";
import { groupCommit } from "./group-commit.ts";
import { Unavailable } from "./port.ts";

/** A database that writes down what it is told, and fails at what it is told to fail at. */
function scribe() {
  const log: string[] = [];
  const failing = new Map<string, Error>();
  const db = {
    isTransaction: false,
    exec(sql: string) {
      log.push(sql);
      const error = failing.get(sql);
      if (error) throw error;
      db.isTransaction = sql.startsWith("BEGIN");
    },
  };
  return { db, log, failing };
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
  test("the writes of one turn share one transaction, those of the next have their own", async () => {
    const { db, log } = scribe();
    const commit = groupCommit(db, never);
    const write = (name: string) => commit.run(() => commit.write(() => log.push(name)));
    await Promise.all([write("a"), write("b")]);
    await write("c");
    expect(log).toEqual(["BEGIN IMMEDIATE", "a", "b", "COMMIT", "BEGIN IMMEDIATE", "c", "COMMIT"]);
  });

  test("nothing is answered or thrown before the commit: not the write, not what saw it", async () => {
    const { db, log } = scribe();
    const commit = groupCommit(db, never);
    const said = (name: string) => () => log.push(name);
    const all = [
      commit.run(() => commit.write(() => 1)).then(said("write")),
      commit.run(() => 1).then(said("read")),
      commit.run(() => never(new Error("refused"))).catch(said("refusal")),
    ];
    await Promise.all(all);
    expect(log.slice(0, 2)).toEqual(["BEGIN IMMEDIATE", "COMMIT"]);
    expect(log.slice(2).sort()).toEqual(["read", "refusal", "write"]);
  });

  test("a read without an open batch needs no transaction and no turn", async () => {
    const { db, log } = scribe();
    const commit = groupCommit(db, never);
    expect(await commit.run(() => 7)).toBe(7);
    expect(log).toEqual([]);
  });

  test("a read waits for the batch that it saw, not for those that follow", async () => {
    const { db, log } = scribe();
    const commit = groupCommit(db, never);
    const write = (name: string) => commit.run(() => commit.write(() => log.push(name)));
    const writes = write("first").then(() => write("second"));
    const read = commit.run(() => 1).then(() => log.push("read"));
    await Promise.all([writes, read]);
    expect(log.indexOf("COMMIT")).toBeLessThan(log.indexOf("read"));
    expect(log.indexOf("read")).toBeLessThan(log.lastIndexOf("COMMIT"));
  });

  test("a failed commit: writes in doubt, reads refused, fatal once, nothing afterwards", async () => {
    const { db, log, failing } = scribe();
    const fatal = vi.fn<(error: unknown) => void>();
    const commit = groupCommit(db, fatal);
    const disk = new Error("disk I/O error");
    failing.set("COMMIT", disk);
    const write = reason(commit.run(() => commit.write(() => 1)));
    const read = reason(commit.run(() => 1));
    const refusal = reason(commit.run(() => never(new Error("refused"))));
    expect(await write).toBeInstanceOf(Unavailable);
    expect(await write).toMatchObject({ inDoubt: true, cause: disk });
    expect(await read).toMatchObject({ name: "Unavailable", inDoubt: false });
    expect(await refusal).toMatchObject({ name: "Unavailable", inDoubt: false });

    failing.clear();
    const before = log.length;
    expect(await reason(commit.run(() => 1))).toMatchObject({ name: "Unavailable", inDoubt: false, cause: disk });
    expect(await reason(commit.run(() => commit.write(() => 1)))).toMatchObject({ inDoubt: false });
    expect(await reason(commit.alone(() => 1))).toMatchObject({ name: "Unavailable" });
    await commit.stop();
    expect(log.slice(before)).toEqual([]);
    expect(fatal.mock.calls).toEqual([[disk]]);
  });

  test("a statement that fails takes its batch along: nothing of it is committed", async () => {
    const { db, log } = scribe();
    const fatal = vi.fn<(error: unknown) => void>();
    const commit = groupCommit(db, fatal);
    const full = new Error("database or disk is full");
    const neighbour = reason(commit.run(() => commit.write(() => 1)));
    const failed = reason(commit.run(() => commit.write(() => never(full))));
    expect(await neighbour).toMatchObject({ name: "Unavailable", inDoubt: true, cause: full });
    expect(await failed).toMatchObject({ name: "Unavailable", inDoubt: true, cause: full });
    expect(log).toEqual(["BEGIN IMMEDIATE"]);
    expect(fatal.mock.calls).toEqual([[full]]);
  });

  test("a transaction of its own waits for the open batch, and is rolled back when it throws", async () => {
    const { db, log } = scribe();
    const commit = groupCommit(db, never);
    void commit.run(() => commit.write(() => log.push("batch")));
    await commit.alone(() => log.push("alone"));
    await expect(commit.alone(() => never(new Error("no")))).rejects.toThrow("no");
    expect(await commit.run(() => 7)).toBe(7);
    expect(log).toEqual([
      "BEGIN IMMEDIATE",
      "batch",
      "COMMIT",
      "BEGIN IMMEDIATE",
      "alone",
      "COMMIT",
      "BEGIN IMMEDIATE",
      "ROLLBACK",
    ]);
  });
});
