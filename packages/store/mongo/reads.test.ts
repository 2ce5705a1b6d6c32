import { serialize } from "bson";
import { expect, test } from "vitest";
import type { Id } from "../port.ts";
import type { Database, Raw } from "./database.ts";
import { pointReads } from "./reads.ts";

/** Documents of which each holds its `_id` alone, and a record of the queries. */
function bench(several: boolean) {
  const queries: { ids: readonly Id[]; level: string }[] = [];
  const raw = {
    find: ({ _id }: { _id: { $in: Id[] } }, options: { readConcern?: { level: string }; session?: object }) => ({
      async toArray() {
        const level = options.readConcern?.level ?? (options.session ? "in session" : "none");
        queries.push({ ids: _id.$in, level });
        return _id.$in.map((id) => serialize({ _id: id }));
      },
    }),
  };
  const database = {
    hasSeveralMembers: () => several,
    inSession: (calls: (session: object) => unknown) => calls({}),
  };
  return { queries, ...pointReads(database as unknown as Database, raw as unknown as Raw) };
}

test("the latest state is what a majority of several members stands for; other reads go by the session", async () => {
  const { queries, read } = bench(true);
  await Promise.all([read(1, true), read("1"), read(2, true), read(1)]);
  expect(queries).toHaveLength(2);
  expect(queries).toContainEqual({ ids: [1, 2], level: "linearizable" });
  expect(queries).toContainEqual({ ids: ["1", 1], level: "in session" });
});

test("on a single member the latest state is a read like others", async () => {
  const { queries, read } = bench(false);
  await Promise.all([read(1, true), read(2)]);
  expect(queries).toEqual([{ ids: [1, 2], level: "in session" }]);
});

test("no read joins one that was sent before", async () => {
  const { queries, read } = bench(false);
  await read(1);
  await read(1);
  expect(queries.map(({ ids }) => ids)).toEqual([[1], [1]]);
});

test("an id that several ask for in one tick is asked for once", async () => {
  const { queries, read } = bench(false);
  const [one, other] = await Promise.all([read(1), read(1), read(2)]);
  expect(one).toEqual(other);
  expect(queries.map(({ ids }) => ids)).toEqual([[1, 2]]);
});

test("more than 256 ids travel in several queries", async () => {
  const { queries, read } = bench(false);
  const answers = await Promise.all(Array.from({ length: 600 }, (_, id) => read(id)));
  expect(answers.every((bytes) => bytes !== undefined)).toBe(true);
  expect(queries.map(({ ids }) => ids.length)).toEqual([256, 256, 88]);
});
