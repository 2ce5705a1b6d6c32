import { setImmediate as idle } from "node:timers/promises";
import { expect, test } from "vitest";
import { recoveryWorker } from "./sagas.ts";

/** Documents that are unfinished until their work succeeds. Advancing one lasts until `held` resolves. */
function setUp(ids: readonly number[], fails: readonly number[] = [], random = () => 0, held?: Promise<void>) {
  const unfinished = new Set(ids);
  const visited: number[] = [];
  const worker = recoveryWorker(
    {
      name: "test",
      everyMs: 1,
      records: {
        list: async ({ after = 0, limit, order }) =>
          [...unfinished]
            .sort((a, b) => (order === "asc" ? a - b : b - a))
            .filter((id) => order === "desc" || id > Number(after))
            .slice(0, limit)
            .map((_id) => ({ _id })),
      },
      advance: async ({ _id }) => {
        visited.push(_id);
        await held;
        if (fails.includes(_id)) throw new Error(`${_id} can't be finished`);
        unfinished.delete(_id);
      },
    },
    { clock: () => 0, random },
  );
  const visit = async (limit = 2) => {
    visited.length = 0;
    await worker.run(limit).catch(() => {});
    return [...visited];
  };
  return { worker, visit, visited };
}

test("everything is advanced once, a batch at a time", async () => {
  const { worker } = setUp([1, 2, 3]);
  expect([await worker.run(2), await worker.run(2), await worker.run(2)]).toEqual([2, 1, 0]);
});

test("what can't be finished does not keep the rest from its turn", async () => {
  const { visit } = setUp([1, 2, 3, 4], [1, 2]);
  expect([await visit(), await visit(), await visit(), await visit()]).toEqual([
    [1, 2],
    [3, 4],
    [1, 2],
    [1, 2],
  ]);
});

test("what waits until its time is up does not use up the time of the rest", async () => {
  let now = 0;
  const done: number[] = [];
  const worker = recoveryWorker(
    {
      name: "test",
      everyMs: 1,
      records: { list: async () => Array.from({ length: 12 }, (_, i) => ({ _id: i + 1 })) },
      advance: async ({ _id }, { deadline }) => {
        if (now >= deadline) throw new Error("too late");
        if (_id > 10) return done.push(_id);
        now += 1_000;
        throw new Error("a peer hangs");
      },
    },
    { clock: () => now, random: () => 0 },
  );
  await worker.run(100).catch(() => {});
  expect(done).toEqual([11, 12]);
});

test("a failure does not stop the others, and the run rejects with it", async () => {
  const { worker } = setUp([1, 2], [1]);
  await expect(worker.run(2)).rejects.toMatchObject({
    message: "1 of 2 are left for another run: 1 can't be finished",
    cause: { message: "1 can't be finished" },
  });
});

test("every failure is counted and each kind of it is named, up to a number", async () => {
  const worker = recoveryWorker(
    {
      name: "test",
      everyMs: 1,
      records: {
        list: async ({ order }) =>
          order === "asc" ? Array.from({ length: 9 }, (_, i) => ({ _id: i + 1 })) : [{ _id: 9 }],
      },
      advance: ({ _id }) => Promise.reject(_id < 5 ? new Error("a peer is down") : new Error(`${_id} is damaged`)),
    },
    { clock: () => 0, random: () => 0 },
  );
  await expect(worker.run(100)).rejects.toThrow(
    "9 of 9 are left for another run: a peer is down (4 times); 5 is damaged; 6 is damaged; 3 other failures",
  );
});

const hundred = Array.from({ length: 100 }, (_, i) => i + 1);

test("a few are advanced concurrently", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { worker, visited } = setUp(hundred, [], () => 0, promise);
  const run = worker.run(100);
  await idle();
  expect(visited).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  resolve();
  expect(await run).toBe(100);
  expect(new Set(visited).size).toBe(100);
});

test("a run that is stopped finishes what is under way and begins no other", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { worker, visited } = setUp(hundred, [], () => 0, promise);
  const stop = new AbortController();
  const run = worker.run(100, stop.signal);
  await idle();
  stop.abort();
  resolve();
  expect(await run).toBe(8);
  expect(visited).toHaveLength(8);
});

test("replicas begin at different documents, and each visits all of them", async () => {
  const visits = await Promise.all(
    [0, 0.3, 0.99].map(async (random) => {
      const { visit } = setUp(hundred, hundred, () => random);
      const batches = [];
      for (let run = 0; run < 10; run++) batches.push(await visit(10));
      expect(batches.flat().toSorted((a, b) => a - b)).toEqual(hundred);
      return batches[0]?.[0];
    }),
  );
  expect(visits).toEqual([1, 31, 100]);
});
