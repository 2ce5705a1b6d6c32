/** The order of reads, decisions and writes, on a database of three members that does what a test says. */
import { serialize } from "bson";
import { MongoNetworkError } from "mongodb";
import { describe, expect, test } from "vitest";
import { MAX_FOLD_MS } from "../document/fold.ts";
import { Corrupt, type Decide, type Doc, keep, put, Unavailable } from "../port.ts";
import { type ChangeOptions, createChanges, type Update } from "./change.ts";
import { readStored, type Stored, toStored, unchanged } from "./operation-log.ts";
import { knownDocuments } from "./reads.ts";
import type { Written } from "./writes.ts";

interface Counter extends Doc {
  readonly count: number;
}

interface Step {
  /** What the next read sees: a count and who made it, no document, or one that can't be read. */
  readonly sees: number | "nothing" | "corrupt";
  readonly by?: "us" | "another";
  readonly reading?: () => void;
  /** What becomes of the write that follows; none may follow when absent. */
  readonly write?: Written | "failed";
  /** Before the write is answered. */
  readonly meanwhile?: () => void;
}

const stored = (count: number, by = "another") =>
  toStored({ _id: 1, rev: count, ...{ count } }, undefined, { by, number: by === "us" ? 1 : count });

interface BenchOptions {
  readonly members?: "one" | "several";
  readonly clock?: () => number;
  /** What the process knows: a count, or that there is no document. */
  readonly knows?: number | "nothing";
  /** What becomes of the write that is made without a read. */
  readonly write?: Step["write"];
}

function bench(steps: Step[], { members = "several", clock = () => 0, knows, write }: BenchOptions = {}) {
  const log: string[] = [];
  const known = knownDocuments<Counter>((bytes) => readStored(bytes, { name: "counters" }));
  if (knows === "nothing") known.noteAbsent(1);
  else if (knows !== undefined) known.read(serialize(stored(knows)));
  const touched: unknown[] = [];
  let step: Step = { sees: 0, ...(write && { write }) };
  const written = (what: string, where: unknown): Written => {
    touched.push(where);
    log.push(what);
    step.meanwhile?.();
    if (step.write === "failed") throw new MongoNetworkError("cut");
    return step.write ?? expect.unreachable("one write too many");
  };
  const options = {
    keys: [],
    database: {
      hasSeveralMembers: () => members === "several",
      inSession: (calls: (s: object) => unknown) => calls({}),
    },
    openWriter: () => ({
      write: async (base: Stored<Counter> | undefined, { count }: Counter) =>
        written(`${base ? "write" : "insert"} ${count}`, base),
      end: () => void log.push("end"),
    }),
    raw: {
      deleteOne: async (filter: object) => ({ deletedCount: written("delete", filter) === "made" ? 1 : 0 }),
    },
    reads: {
      async read(_id: unknown, _by: unknown, latest: boolean) {
        step = steps.shift() ?? expect.unreachable("one read too many");
        step.reading?.();
        log.push(latest ? "read latest" : "read");
        if (step.sees === "nothing") return undefined;
        const bytes = serialize(step.sees === "corrupt" ? { _id: 1 } : stored(step.sees, step.by));
        return readStored<Counter>(bytes, { name: "counters" });
      },
    },
    known,
    timing: { clock, random: () => 0, sleep: async () => {} },
    nextOperation: () => ({ by: "us", number: 1 }),
  };
  return { log, touched, known, ...createChanges<Counter>(options as unknown as ChangeOptions<Counter>) };
}

function updates(...decides: Decide<Counter, unknown>[]) {
  const results: unknown[] = decides.map(() => "waiting");
  const all = decides.map((decide, i) => ({
    decide,
    call: { isOver: false, inDoubt: false, failure: undefined, remaining: () => 1_000 },
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
  expect(log).toEqual(["read", "read latest", "end"]);
  expect(results).toEqual(["no more than 2"]);
});

test("a refusal by throwing is too, and the latest state may turn it into a write", async () => {
  const { log, change } = bench([{ sees: 1 }, { sees: 2, write: "made" }]);
  const { all, results } = updates((doc, rev) => {
    if (doc?.count === 1) throw new Error("not yet");
    return add(doc, rev);
  });
  await change(1, all);
  expect(log).toEqual(["read", "read latest", "write 3", "end"]);
  expect(results).toEqual([3]);
});

test("a refusal beside a write needs no second read, nor does one on a single member", async () => {
  const several = bench([{ sees: 1, write: "made" }]);
  const both = updates(add, refuse);
  await several.change(1, both.all);
  expect([several.log, both.results]).toEqual([
    ["read", "write 2", "end"],
    [2, "no more than 2"],
  ]);

  const single = bench([{ sees: 1 }], { members: "one" });
  const one = updates(refuse);
  await single.change(1, one.all);
  expect([single.log, one.results]).toEqual([["read", "end"], ["no more than 1"]]);
});

test("deciding stops when others must get their turn: the rest waits, and the attempts stand for those that had theirs", async () => {
  let now = 0;
  const slow: Decide<Counter, unknown> = (doc, rev) => {
    now += MAX_FOLD_MS / 2;
    return add(doc, rev);
  };
  const steps: Step[] = [
    { sees: 1, write: "not made" },
    { sees: 5, write: "failed" },
    { sees: 5, write: "made" },
    { sees: 7, write: "made" },
  ];
  const { log, change } = bench(steps, { members: "one", clock: () => now });
  const { all, results } = updates(slow, slow, slow);
  const rest = await change(1, all);
  expect(rest).toEqual(all.slice(2));
  expect(log).toEqual(["read", "write 3", "read", "write 7", "read", "write 7", "end"]);
  expect(results).toEqual([6, 7, "waiting"]);
  expect(await change(1, rest)).toEqual([]);
  expect(results).toEqual([6, 7, 8]);
});

test("a failure is told to those that had their turn, and to no others", async () => {
  let now = 0;
  const slow: Decide<Counter, unknown> = (doc, rev) => {
    now += MAX_FOLD_MS;
    return add(doc, rev);
  };
  const steps: Step[] = [{ sees: 1, write: "failed" }, { sees: "corrupt" }];
  const { change } = bench(steps, { members: "one", clock: () => now });
  const { all, results } = updates(slow, add, add);
  Object.assign(all[2]?.call ?? {}, { isOver: true });
  expect(await change(1, all)).toEqual([all[1]]);
  expect(results).toEqual([expect.any(Unavailable), "waiting", expect.any(Unavailable)]);
});

test("what can't be read is refused to all, whoever's turn it is", async () => {
  const { all, results } = updates(add, add);
  expect(await bench([{ sees: "corrupt" }]).change(1, all)).toEqual([]);
  expect(results).toEqual([expect.any(Corrupt), expect.any(Corrupt)]);
});

test("whose time is over when a race was lost is not written any more", async () => {
  const first = updates(add, add);
  const end = () => void Object.assign(first.all[0]?.call ?? {}, { isOver: true });
  const { log, change } = bench([
    { sees: 1, write: "not made", meanwhile: end },
    { sees: 5, write: "made" },
  ]);
  await change(1, first.all);
  expect(log).toEqual(["read", "write 3", "read", "write 6", "end"]);
  expect(first.results).toEqual([expect.anything(), 6]);
  expect(first.all[0]?.call.inDoubt).toBe(false);
});

test("what may have been made together stays together, and is in doubt", async () => {
  const { all, results } = updates(add, add);
  const end = () => void Object.assign(all[0]?.call ?? {}, { isOver: true });
  const { log, change } = bench([
    { sees: 1, write: "failed", meanwhile: end },
    { sees: 1, write: "made" },
  ]);
  await change(1, all);
  expect(log).toEqual(["read", "write 3", "read", "write 3", "end"]);
  expect(results[1]).toBe(3);
  expect(all[0]?.call.inDoubt).toBe(true);
});

test("what may have been inserted, but is not there, is inserted again, which fences the first", async () => {
  const { all, results } = updates(add, refuse);
  const end = () => void Object.assign(all[0]?.call ?? {}, { isOver: true });
  const { log, change } = bench([
    { sees: "nothing", write: "failed", meanwhile: end },
    { sees: "nothing", write: "made" },
  ]);
  await change(1, all);
  expect(log).toEqual(["read", "insert 1", "read", "insert 1", "end"]);
  expect(results).toEqual([1, "no more than 1"]);
});

test("whose write may be one of those that were not made reads again, and the log tells", async () => {
  const made = updates(add);
  const found = bench([
    { sees: 1, write: "unsure" },
    { sees: 2, by: "us" },
  ]);
  await found.change(1, made.all);
  expect(found.log).toEqual(["read", "write 2", "read", "end"]);
  expect(made.results).toEqual([2]);

  const lost = updates(add);
  const overtaken = bench([
    { sees: 1, write: "unsure" },
    { sees: 2, write: "made" },
  ]);
  await overtaken.change(1, lost.all);
  expect(overtaken.log).toEqual(["read", "write 2", "read", "write 3", "end"]);
  expect(lost.results).toEqual([3]);
});

test("it is in doubt until that read, and no longer", async () => {
  const { all, results } = updates((doc, rev) => (doc?.count === 1 ? add(doc, rev) : refuse(doc, rev)));
  const doubts: unknown[] = [];
  const reading = () => void doubts.push(all[0]?.call.inDoubt);
  const { change } = bench([
    { sees: 1, reading, write: "unsure" },
    { sees: 2, reading },
    { sees: 2, reading },
  ]);
  await change(1, all);
  expect(doubts).toEqual([false, true, false]);
  expect(results).toEqual(["no more than 2"]);
});

test("it is in doubt for good when its entry may have been pushed out", async () => {
  const { all, results } = updates(add);
  const { change } = bench([{ sees: 5, write: "unsure" }, { sees: 1 }]);
  await change(1, all);
  expect(results).toEqual([expect.objectContaining({ name: "Unavailable", inDoubt: true })]);
});

test.each(["unsure", "failed"] as const)(
  "what may have been made (%s) is in doubt when it can't be read",
  async (write) => {
    const { all, results } = updates(add);
    await bench([{ sees: 1, write }, { sees: "corrupt" }]).change(1, all);
    expect(results).toEqual([expect.objectContaining({ name: "Unavailable", inDoubt: true })]);

    const unsent = updates(add);
    await bench([{ sees: "corrupt" }]).change(1, unsent.all);
    expect(unsent.results).toEqual([expect.any(Corrupt)]);
  },
);

test("a write and a removal touch exactly what was read", async () => {
  const call = { isOver: false, inDoubt: false, failure: undefined, remaining: () => 1_000 };
  const { change, remove, touched } = bench([
    { sees: 7, write: "made" },
    { sees: 7, write: "not made" },
    { sees: 8, write: "made" },
  ]);
  await change(1, updates(add).all);
  await remove(1, () => true, call);
  const read = (count: number) => readStored<Counter>(serialize(stored(count)), { name: "counters" });
  expect(touched).toEqual([read(7), unchanged(read(7)), unchanged(read(8))]);
});

describe("what the process knows saves the read", () => {
  test("a write is decided on it, and what was written is known then", async () => {
    const { log, change, known } = bench([], { knows: 1, write: "made" });
    const { all, results } = updates(add, refuse);
    await change(1, all);
    expect(log).toEqual(["write 2", "end"]);
    expect(results).toEqual([2, "no more than 2"]);
    expect(known.base(1)?.document).toEqual({
      doc: { _id: 1, rev: 2, count: 2 },
      operations: [
        { by: "us", number: 1, rev: 2 },
        { by: "another", number: 1, rev: 1 },
      ],
    });
  });

  test("a document that is known to be absent is inserted", async () => {
    const { log, change } = bench([], { knows: "nothing", write: "made" });
    const { all, results } = updates(add);
    await change(1, all);
    expect([log, results]).toEqual([["insert 1", "end"], [1]]);
  });

  test("an _id beyond all that was seen is most likely new", async () => {
    const { known } = bench([]);
    expect(known.base(2)).toBeUndefined();
    known.read(serialize(stored(1)));
    expect(known.base(2)).toEqual({ document: undefined });
    expect(known.base("2")).toBeUndefined();
    known.read(serialize({ ...stored(1), _id: 3 }));
    expect(known.base(2)).toBeUndefined();
  });

  test.each([
    ["a write", 1, "write 2"],
    ["an insert", "nothing", "insert 1"],
  ] as const)("%s that finds another state is decided anew on a fresh read", async (_, knows, first) => {
    const { log, change } = bench([{ sees: 7, write: "made" }], { knows, write: "not made" });
    const { all, results } = updates(add);
    await change(1, all);
    expect([log, results]).toEqual([[first, "read", "write 8", "end"], [8]]);
  });

  test.each(["one", "several"] as const)(
    "a refusal is decided on a fresh read of the latest state (%s)",
    async (members) => {
      for (const knows of [1, "nothing"] as const) {
        const { log, change } = bench([{ sees: 2 }], { members, knows });
        const { all, results } = updates(refuse, () => {
          throw new Error("never");
        });
        await change(1, all);
        expect([log, results]).toEqual([
          ["read latest", "end"],
          ["no more than 2", new Error("never")],
        ]);
      }
    },
  );

  test("a write that is in doubt is looked for, and nothing is known any more", async () => {
    const { log, change, known } = bench([{ sees: 2, by: "us" }], { knows: 1, write: "failed" });
    const { all, results } = updates(add);
    await change(1, all);
    expect([log, results]).toEqual([["write 2", "read", "end"], [2]]);
    expect(known.base(1)).toBeUndefined();
  });

  test("what is removed is not known any more", async () => {
    const call = { isOver: false, inDoubt: false, failure: undefined, remaining: () => 1_000 };
    const { remove, known } = bench([{ sees: 1, write: "made" }], { knows: 1 });
    await remove(1, () => true, call);
    expect(known.base(1)).toBeUndefined();
  });
});
