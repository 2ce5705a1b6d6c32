import { setImmediate as tick } from "node:timers/promises";
import { serialize } from "bson";
import { expect, test } from "vitest";
import type { Scan } from "../engine/queries.ts";
import type { Database, Raw } from "./database.ts";
import { createLists } from "./lists.ts";

/** Lists whose only document is the number of the query. Each query waits for `answer`. */
function bench() {
  const queries: { command: object; answer: () => void }[] = [];
  const database = {
    inSession: (calls: (session: object) => unknown) => calls({}),
    db: {
      async command(command: object) {
        const { promise, resolve } = Promise.withResolvers<void>();
        const number = queries.push({ command, answer: resolve });
        await promise;
        return { cursor: { id: 0, firstBatch: [serialize({ number })] } };
      },
    },
  };
  const list = createLists(database as unknown as Database, { collectionName: "pets" } as Raw);
  return { queries, list: (scan: Scan) => list(scan, { isOver: false, remaining: () => 1_000 }) };
}
const scan = (kind: string, more: Partial<Scan> = {}): Scan => ({
  match: { fields: ["kind"], values: [[kind]] },
  after: undefined,
  limit: 20,
  order: "desc",
  ...more,
});

test("each list is a query of its own, which nothing but its documents answers; equal ones are one", async () => {
  const { queries, list } = bench();
  const same = Promise.all(Array.from({ length: 50 }, () => list(scan("a"))));
  const others = [scan("b"), scan("a", { after: 7 }), scan("a", { limit: 21 }), scan("a", { order: "asc" })].map(list);
  await tick();
  for (const { answer } of queries) answer();
  const [first, ...rest] = await same;
  expect(rest.every((page) => page === first)).toBe(true);
  expect(new Set(await Promise.all(others)).size).toBe(4);
  const [hint, sort] = [{ kind: 1, _id: 1 }, { _id: -1 }];
  const find = {
    find: "pets",
    hint,
    sort,
    limit: 20,
    batchSize: 21,
    readConcern: { level: "majority" },
    maxTimeMS: 1_000,
  };
  const filter = { kind: { $in: ["a"] } };
  expect(queries.map(({ command }) => command)).toEqual([
    { ...find, filter },
    { ...find, filter: { kind: { $in: ["b"] } } },
    { ...find, filter: { ...filter, _id: { $lt: 7 } } },
    { ...find, filter, limit: 21, batchSize: 22 },
    { ...find, filter, sort: { _id: 1 } },
  ]);
});

test("what can match nothing needs no query", async () => {
  const { queries, list } = bench();
  expect(await list(scan("a", { match: { fields: ["kind"], values: [[]] } }))).toEqual([]);
  expect(queries).toEqual([]);
});

test("lists leave connections to others, however many there are", async () => {
  const { queries, list } = bench();
  const all = Promise.all(Array.from({ length: 80 }, (_, after) => list(scan("a", { after }))));
  let answered = 0;
  for (const most of [32, 64, 80]) {
    for (let i = 0; i < 200; i++) await tick();
    expect(queries).toHaveLength(most);
    for (; answered < most; answered++) queries[answered]?.answer();
  }
  expect(await all).toHaveLength(80);
});
