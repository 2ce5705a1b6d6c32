/** The order of reads, decisions and writes, on a database of three members that does what a test says. */
import { serialize } from "bson";
import { MongoNetworkError } from "mongodb";
import { expect, test } from "vitest";
import { type ChangeOptions, createChanges } from "./mongo-change.ts";
import type { Update } from "./mongo-lanes.ts";
import { toStored } from "./mongo-marks.ts";
import { Corrupt, type Decide, type Doc, keep, put, Unavailable } from "./port.ts";

interface Counter extends Doc {
  readonly count: number;
}

interface Step {
  /** What the next read sees: a count, no document, or one that can't be read. */
  readonly sees: number | "nothing" | "poison";
  /** What becomes of the write that follows; none may follow when absent. */
  readonly write?: "made" | "lost" | "failed";
  /** Before the write is answered. */
  readonly meanwhile?: () => void;
}

const stored = (count: number) =>
  toStored({ _id: 1, rev: count, ...{ count } }, undefined, { by: "another", number: count });

function bench(steps: Step[], members: "one" | "several" = "several") {
  const log: string[] = [];
  const filters: unknown[] = [];
  const sessions = new Set<unknown>();
  let step: Step = { sees: 0 };
  const written = (filter: object, what: string, made: object, lost: object) => {
    filters.push(filter);
    log.push(what);
    step.meanwhile?.();
    if (step.write === "failed") throw new MongoNetworkError("cut");
    return step.write === "made" ? made : lost;
  };
  const options = {
    kind: { name: "counters" },
    keys: [],
    database: {
      hasSeveralMembers: () => members === "several",
      inSession: (calls: (s: object) => unknown) => calls({}),
    },
    raw: {
      insertOne: async ({ count }: Counter, { session }: { session: unknown }) => {
        sessions.add(session);
        return written({}, `insert ${count}`, {}, {});
      },
      replaceOne: async (filter: object, { count }: Counter) =>
        written(filter, `write ${count}`, { matchedCount: 1 }, { matchedCount: 0 }),
      deleteOne: async (filter: object) => written(filter, "delete", { deletedCount: 1 }, { deletedCount: 0 }),
    },
    reads: {
      async read(_: unknown, latest: boolean) {
        step = steps.shift() ?? expect.unreachable("one read too many");
        log.push(latest ? "read latest" : "read");
        if (step.sees === "nothing") return undefined;
        return serialize(step.sees === "poison" ? { _id: 1 } : stored(step.sees));
      },
    },
    timing: { clock: () => 0, random: () => 0, sleep: async () => {} },
    nextChange: () => ({ by: "us", number: 1 }),
  };
  return { log, filters, sessions, ...createChanges<Counter>(options as unknown as ChangeOptions) };
}

function updates(...decides: Decide<Counter, unknown>[]) {
  const results: unknown[] = decides.map(() => "waiting");
  const all = decides.map((decide, i) => ({
    decide,
    limit: { isOver: false, inDoubt: false, failure: undefined },
    resolve: (result: unknown) => void results.splice(i, 1, result),
    reject: (error: unknown) => void results.splice(i, 1, error),
  })) satisfies Update<Counter>[];
  return { all, results };
}
const add: Decide<Counter, unknown> = (doc) => put({ _id: 1, count: (doc?.count ?? 0) + 1 }, (doc?.count ?? 0) + 1);
const refuse: Decide<Counter, unknown> = (doc) => keep(`no more than ${doc?.count}`);

test("a refusal on several members is decided on the latest state", async () => {
  const { log, change } = bench([{ sees: 1 }, { sees: 2 }]);
  const { all, results } = updates(refuse);
  await change(1, all);
  expect(log).toEqual(["read", "read latest"]);
  expect(results).toEqual(["no more than 2"]);
});

test("a refusal by throwing is too, and the latest state may turn it into a write", async () => {
  const { log, change } = bench([{ sees: 1 }, { sees: 2, write: "made" }]);
  const { all, results } = updates((doc, rev) => {
    if (doc?.count === 1) throw new Error("not yet");
    return add(doc, rev);
  });
  await change(1, all);
  expect(log).toEqual(["read", "read latest", "write 3"]);
  expect(results).toEqual([3]);
});

test("a refusal beside a write needs no second read, nor does one on a single member", async () => {
  const several = bench([{ sees: 1, write: "made" }]);
  const both = updates(add, refuse);
  await several.change(1, both.all);
  expect([several.log, both.results]).toEqual([
    ["read", "write 2"],
    [2, "no more than 2"],
  ]);

  const single = bench([{ sees: 1 }], "one");
  const one = updates(refuse);
  await single.change(1, one.all);
  expect([single.log, one.results]).toEqual([["read"], ["no more than 1"]]);
});

test("whose time is over when a race was lost is not written any more", async () => {
  const first = updates(add, add);
  const end = () => void Object.assign(first.all[0]?.limit ?? {}, { isOver: true });
  const { log, change } = bench([
    { sees: 1, write: "lost", meanwhile: end },
    { sees: 5, write: "made" },
  ]);
  await change(1, first.all);
  expect(log).toEqual(["read", "write 3", "read", "write 6"]);
  expect(first.results).toEqual([expect.anything(), 6]);
  expect(first.all[0]?.limit.inDoubt).toBe(false);
});

test("what may have been made together stays together, and is in doubt", async () => {
  const { all, results } = updates(add, add);
  const end = () => void Object.assign(all[0]?.limit ?? {}, { isOver: true });
  const { log, change } = bench([
    { sees: 1, write: "failed", meanwhile: end },
    { sees: 1, write: "made" },
  ]);
  await change(1, all);
  expect(log).toEqual(["read", "write 3", "read", "write 3"]);
  expect(results[1]).toBe(3);
  expect(all[0]?.limit.inDoubt).toBe(true);
});

test("what may have been inserted, but is not there, is inserted again in the session that fences the first", async () => {
  const { all, results } = updates(add, refuse);
  const end = () => void Object.assign(all[0]?.limit ?? {}, { isOver: true });
  const { log, sessions, change } = bench([
    { sees: "nothing", write: "failed", meanwhile: end },
    { sees: "nothing", write: "made" },
  ]);
  await change(1, all);
  expect(log).toEqual(["read", "insert 1", "read", "insert 1"]);
  expect(sessions.size).toBe(1);
  expect(results).toEqual([1, "no more than 1"]);
});

test("what may have been made is in doubt when the document can't be read any more", async () => {
  const { all, results } = updates(add);
  const { change } = bench([{ sees: 1, write: "failed" }, { sees: "poison" }]);
  await change(1, all);
  expect(results).toEqual([new Unavailable(true)]);
  expect(results[0]).toMatchObject({ inDoubt: true });

  const unsent = updates(add);
  await bench([{ sees: "poison" }]).change(1, unsent.all);
  expect(unsent.results).toEqual([expect.any(Corrupt)]);
});

test("a write and a removal touch exactly what was read", async () => {
  const limit = { isOver: false, inDoubt: false, failure: undefined };
  const { change, remove, filters } = bench([
    { sees: 7, write: "made" },
    { sees: 7, write: "lost" },
    { sees: 8, write: "made" },
  ]);
  await change(1, updates(add).all);
  await remove(1, () => true, limit);
  const exactly = (count: number) => ({ _id: 1, rev: count, "_marks.0": { by: "another", number: count, rev: count } });
  expect(filters).toEqual([exactly(7), exactly(7), exactly(8)]);
});
