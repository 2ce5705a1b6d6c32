import { setImmediate as tick } from "node:timers/promises";
import { serialize } from "bson";
import { expect, test } from "vitest";
import type { Scan } from "../engine/indexes.ts";
import { Unavailable } from "../port.ts";
import type { Database, Raw } from "./database.ts";
import { createLists } from "./lists.ts";

/** Lists whose only document is the number of the query. Each query waits for `answer`. */
function bench() {
  const queries: { asked: number; answer: () => void }[] = [];
  const database = {
    inSession: (calls: (session: object) => unknown) => calls({}),
    db: {
      async command({ pipeline = [] }: { pipeline?: object[] }) {
        const { promise, resolve } = Promise.withResolvers<void>();
        const boundaries = pipeline.filter((stage) => "$unionWith" in stage).length / 2;
        const number = queries.push({ asked: 1 + boundaries, answer: resolve });
        await promise;
        const lists = Array.from({ length: boundaries }, () => [serialize({}), serialize({ number })]);
        return { cursor: { id: 0, firstBatch: [serialize({ number }), ...lists.flat()] } };
      },
    },
  };
  const enter = createLists(database as unknown as Database, {} as Raw);
  return { queries, list: (scan: Scan, call = { isOver: false }) => enter(scan, call) };
}
const scan = (kind: string, more: Partial<Scan> = {}): Scan => ({
  match: { fields: ["kind"], values: [[kind]] },
  after: undefined,
  limit: 20,
  order: "desc",
  ...more,
});

test("lists of one tick travel together, and those that are the same are one", async () => {
  const { queries, list } = bench();
  const same = Promise.all(Array.from({ length: 50 }, () => list(scan("a"))));
  const others = [scan("b"), scan("a", { after: 7 }), scan("a", { limit: 21 }), scan("a", { order: "asc" })].map(
    (one) => list(one),
  );
  await tick();
  expect(queries.map(({ asked }) => asked)).toEqual([5]);
  queries[0]?.answer();
  const [first, ...rest] = await same;
  expect(rest.every((page) => page === first)).toBe(true);
  expect(new Set(await Promise.all(others)).size).toBe(4);
});

test("no list joins a query that was sent before: those that come while two are under way share the next", async () => {
  const { queries, list } = bench();
  const first = list(scan("a"));
  await tick();
  void list(scan("a"));
  await tick();
  expect(queries).toHaveLength(2);
  const later = [list(scan("a"))];
  await tick();
  later.push(list(scan("a")));
  await tick();
  later.push(list(scan("b")));
  await tick();
  expect(queries).toHaveLength(2);
  for (const { answer } of queries) answer();
  await first;
  while (queries.length < 3) await tick();
  for (const { answer } of queries) answer();
  const [one, two, other] = await Promise.all(later);
  expect(one).toBe(two);
  expect(one).not.toEqual(await first);
  expect(other).not.toBe(one);
});

test("more than eight lists take several queries, of which two are under way at a time", async () => {
  const { queries, list } = bench();
  const all = Promise.all(Array.from({ length: 36 }, (_, after) => list(scan("a", { after }))));
  for (const expected of [
    [8, 8],
    [8, 8, 8, 8],
    [8, 8, 8, 8, 4],
  ]) {
    while (queries.length < expected.length) await tick();
    for (let i = 0; i < 10; i++) await tick();
    expect(queries.map(({ asked }) => asked)).toEqual(expected);
    for (const { answer } of queries) answer();
  }
  expect(await all).toHaveLength(36);
});

test("a list of more than a hundred documents, of several values or of a long one holds up nobody else", async () => {
  const { queries, list } = bench();
  const severalValues = scan("a", { match: { fields: ["kind"], values: [["a", "b"]] } });
  const long = [scan("a", { limit: 101 }), severalValues, scan("a".repeat(1_000))];
  const all = [...long, scan("a"), scan("a", { limit: 100 })].map((one) => list(one));
  await tick();
  expect(queries.map(({ asked }) => asked)).toEqual([1, 1, 1, 2]);
  for (const { answer } of queries) answer();
  await Promise.all(all);
});

test("what nobody waits for any more when its turn comes is not sent", async () => {
  const { queries, list } = bench();
  const first = [list(scan("a")), list(scan("b"))];
  await tick();
  void list(scan("c"));
  await tick();
  const [gone, here] = [{ isOver: false }, { isOver: false }];
  const [alone, shared, same] = [list(scan("d"), gone), list(scan("e"), gone), list(scan("e"), here)];
  gone.isOver = true;
  for (const { answer } of queries) answer();
  await Promise.all(first);
  await expect(alone).rejects.toThrow(Unavailable);
  while (queries.length < 3) await tick();
  expect(queries[2]?.asked).toBe(1);
  queries[2]?.answer();
  expect(await shared).toBe(await same);
});
