import { setImmediate as tick } from "node:timers/promises";
import { deserialize, serialize } from "bson";
import { afterEach, expect, test, vi } from "vitest";
import { Corrupt, type Doc, type Id } from "../port.ts";
import type { Database, Raw } from "./database.ts";
import { readStored } from "./operation-log.ts";
import { knownDocuments, pointReads } from "./reads.ts";

afterEach(() => void vi.useRealTimers());

interface Asked {
  readonly filter: { readonly _id: Id | { readonly $in: readonly Id[] } };
  readonly readConcern: { readonly level: string };
}

interface Answer extends Doc {
  readonly query: number;
}

const waits = { isOver: false, remaining: () => 1_000 };

/** Documents that hold their `_id` and the number of the query that found them. Queries wait for `answer` when held. */
function bench(several: boolean, isHeld = false) {
  const queries: { ids: readonly Id[]; level: string; answer: () => void }[] = [];
  const filters: Asked["filter"][] = [];
  const decoded: Id[] = [];
  const absent: Id[] = [];
  const noted: unknown[] = [];
  const database = {
    noteTime: ({ operationTime }: { operationTime: unknown }) => void noted.push(operationTime),
    hasSeveralMembers: () => several,
    inSession: (calls: (session: object) => unknown) => calls({}),
    db: {
      async command({ filter, readConcern }: Asked, { session }: { session?: object }) {
        const ids = typeof filter._id === "object" ? filter._id.$in : [filter._id];
        filters.push(filter);
        const { promise, resolve } = Promise.withResolvers<void>();
        queries.push({ ids, level: session ? "in session" : readConcern.level, answer: resolve });
        const query = queries.length;
        if (isHeld) await promise;
        const firstBatch = ids.map((id) => serialize(id === "nameless" ? { query } : { _id: id, query }));
        return { cursor: { id: 0, firstBatch }, operationTime: `time of ${query}` };
      },
    },
  };
  const known = {
    read(bytes: Uint8Array) {
      const doc = deserialize(bytes) as Answer;
      decoded.push(doc._id);
      if (doc._id === "bad" || doc._id === undefined) throw new Corrupt("bad");
      return { doc, operations: [] };
    },
    noteAbsent: (id: Id) => void absent.push(id),
  };
  const reads = pointReads<Answer>(database as unknown as Database, {} as Raw, known);
  const read = (id: Id, latest = false, by = waits) => reads.read(id, [by], latest);
  return { queries, filters, decoded, absent, noted, read };
}
/** Until so many queries were sent. */
async function sent(queries: readonly unknown[], count: number): Promise<void> {
  while (queries.length < count) await tick();
}
const idsOf = (queries: readonly { ids: readonly Id[] }[]) => queries.map(({ ids }) => ids);

test("the latest state is what a majority of several members stands for; other reads go by the session", async () => {
  const { queries, read } = bench(true);
  await Promise.all([read(1, true), read("1"), read(2, true), read(1)]);
  expect(queries).toMatchObject([
    { ids: [1, 2], level: "linearizable" },
    { ids: ["1", 1], level: "in session" },
  ]);
});

test("what was the latest state once is there for all later reads", async () => {
  const { noted, read } = bench(true);
  await read(1, true);
  expect(noted).toEqual(["time of 1"]);
  await read(1); // of which its session takes note
  expect(noted).toEqual(["time of 1"]);
});

test("on a single member the latest state is a read like others", async () => {
  const { queries, read } = bench(false);
  await Promise.all([read(1, true), read(2)]);
  expect(queries).toMatchObject([{ ids: [1, 2], level: "in session" }]);
});

test("an id that several ask for in one tick is asked for and decoded once", async () => {
  const { queries, decoded, read } = bench(false);
  const [one, other] = await Promise.all([read(1), read(1), read(2)]);
  expect(one).toBe(other);
  expect(idsOf(queries)).toEqual([[1, 2]]);
  expect(decoded).toEqual([1, 2]);
});

test("a document that is asked for alone is asked for by what MongoDB needs no plan for", async () => {
  const { filters, read } = bench(false);
  await Promise.all([read(1), read(1)]);
  await Promise.all([read(1), read(2)]);
  expect(filters).toEqual([{ _id: 1 }, { _id: { $in: [1, 2] } }]);
});

test("a document that can't be decoded harms only those who ask for it", async () => {
  const { read } = bench(false);
  const [good, bad] = await Promise.allSettled([read("good"), read("bad"), read("bad")]);
  expect(good.status).toBe("fulfilled");
  expect(bad).toMatchObject({ reason: { name: "Corrupt" } });
});

test("where a document can't be told from others, none of those that were asked for is said to be absent", async () => {
  const { absent, read } = bench(false);
  const found = await Promise.allSettled([read("good"), read("nameless"), read("nameless")]);
  expect(found.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
  expect(absent).toEqual([]);
});

test.each([true, false])("no read joins one that was sent before: it takes the next (latest: %s)", async (latest) => {
  const { queries, read } = bench(true, true);
  const first = read(1, latest);
  await tick();
  const later = Promise.all([read(1, latest), read(2, latest), read(1, latest)]);
  await tick();
  expect(idsOf(queries)).toEqual([[1]]);
  queries[0]?.answer();
  expect((await first)?.doc.query).toBe(1);
  await sent(queries, 2);
  queries[1]?.answer();
  expect((await later).map((found) => found?.doc.query)).toEqual([2, 2, 2]);
  expect(idsOf(queries)).toEqual([[1], [1, 2]]);
});

test("a read that may be lost is not waited for", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  const { queries, read } = bench(true, true);
  void read(1, true);
  await tick();
  const later = read(2, true);
  await vi.advanceTimersByTimeAsync(600);
  await sent(queries, 2);
  queries[1]?.answer();
  expect((await later)?.doc.query).toBe(2);
});

test("more than 1000 ids travel in several queries, one after the other", async () => {
  const { queries, read } = bench(false);
  const answers = await Promise.all(Array.from({ length: 2_600 }, (_, id) => read(id)));
  expect(answers.map((found) => found?.doc.query)).toEqual(
    Array.from({ length: 2_600 }, (_, id) => 1 + Math.floor(id / 1_000)),
  );
  expect(queries.map(({ ids }) => ids.length)).toEqual([1_000, 1_000, 600]);
});

interface Text extends Doc {
  readonly text: string;
}
const bytesOf = (_id: number) => serialize({ _id, rev: 1, text: "x".repeat(1000), _operations: [] });

test("what is known is bounded, and what is oldest is forgotten first", () => {
  const known = knownDocuments<Text>((bytes) => readStored(bytes, { name: "texts" }));
  for (let id = 0; id < 10_000; id++) known.read(bytesOf(id));
  const left = Array.from({ length: 10_000 }, (_, id) => id).filter((id) => known.base(id)?.document);
  expect(left.length).toBeGreaterThan(200);
  expect(left.length).toBeLessThan(600);
  expect(left).toEqual(Array.from(left, (_, i) => 10_000 - left.length + i));
});

test("an id above all that were seen is most likely new, and nothing is known of one below", () => {
  const known = knownDocuments<Text>((bytes) => readStored(bytes, { name: "texts" }));
  expect(known.base(7)).toBeUndefined();
  known.read(bytesOf(5));
  expect([known.base(7), known.base(3)]).toEqual([{ document: undefined }, undefined]);
});

test("what is forgotten is not known, and what is absent is known to be", () => {
  const known = knownDocuments<Text>((bytes) => readStored(bytes, { name: "texts" }));
  known.read(bytesOf(5));
  expect(known.base(5)?.document?.doc._id).toBe(5);
  known.forget(5);
  expect(known.base(5)).toBeUndefined();
  known.noteAbsent(5);
  expect(known.base(5)).toMatchObject({ document: undefined });
});
