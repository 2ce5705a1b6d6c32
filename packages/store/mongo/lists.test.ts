import { setImmediate as tick } from "node:timers/promises";
import { serialize } from "bson";
import { expect, test } from "vitest";
import type { Scan } from "../engine/indexes.ts";
import type { Database, Raw } from "./database.ts";
import { createLists } from "./lists.ts";

/** Lists whose only document is the number of the query. Each waits for `answer`. */
function bench() {
  const queries: { answer: () => void }[] = [];
  const database = {
    inSession: (calls: (session: object) => unknown) => calls({}),
    db: {
      async command() {
        const { promise, resolve } = Promise.withResolvers<void>();
        const number = queries.push({ answer: resolve });
        await promise;
        return { cursor: { id: 0, firstBatch: [serialize({ number })] } };
      },
    },
  };
  return { queries, list: createLists(database as unknown as Database, {} as Raw) };
}
const scan = (kind: string, more: Partial<Scan> = {}): Scan => ({
  match: { fields: ["kind"], values: [[kind]] },
  after: undefined,
  limit: 20,
  order: "desc",
  ...more,
});

test("lists of one tick that are the same are one query, others are their own", async () => {
  const { queries, list } = bench();
  const same = Promise.all(Array.from({ length: 50 }, () => list(scan("a"))));
  const others = [scan("b"), scan("a", { after: 7 }), scan("a", { limit: 21 }), scan("a", { order: "asc" })].map(list);
  await tick();
  expect(queries).toHaveLength(5);
  for (const { answer } of queries) answer();
  const [first, ...rest] = await same;
  expect(rest.every((page) => page === first)).toBe(true);
  expect(new Set(await Promise.all(others)).size).toBe(4);
});

test("no list joins a query that was sent before: those that wait for its end share the next", async () => {
  const { queries, list } = bench();
  const first = list(scan("a"));
  await tick();
  const later = [list(scan("a"))];
  await tick();
  later.push(list(scan("a")));
  const other = list(scan("b"));
  await tick();
  expect(queries).toHaveLength(2);
  queries[0]?.answer();
  await first;
  while (queries.length < 3) await tick();
  queries[1]?.answer();
  queries[2]?.answer();
  await other;
  const [one, two] = await Promise.all(later);
  expect(one).toBe(two);
  expect(one).not.toEqual(await first);
});
