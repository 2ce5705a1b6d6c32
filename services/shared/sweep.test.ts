import { expect, test } from "vitest";
import { removing, sweeping } from "./sweep.ts";

/** Documents that are unfinished until their work succeeds. */
function setUp(ids: readonly number[], fails: readonly number[] = []) {
  const unfinished = new Set(ids);
  const visited: number[] = [];
  const worker = sweeping(
    {
      name: "test",
      everyMs: 1,
      list: async ({ after = 0, limit }) =>
        [...unfinished]
          .filter((id) => id > after)
          .slice(0, limit)
          .map((_id) => ({ _id })),
      work: async ({ _id }) => {
        visited.push(_id);
        if (fails.includes(_id)) throw new Error(`${_id} can't be finished`);
        unfinished.delete(_id);
      },
    },
    { clock: () => 0, random: () => 0 },
  );
  const visit = async () => {
    visited.length = 0;
    await worker.sweep(2).catch(() => {});
    return [...visited];
  };
  return { worker, visit };
}

test("everything is visited once, a batch at a time", async () => {
  const { worker } = setUp([1, 2, 3]);
  expect([await worker.sweep(2), await worker.sweep(2), await worker.sweep(2)]).toEqual([2, 1, 0]);
});

test("what can't be finished does not keep the rest from its turn", async () => {
  const { visit } = setUp([1, 2, 3, 4], [1, 2]);
  expect([await visit(), await visit(), await visit(), await visit()]).toEqual([[1, 2], [3, 4], [], [1, 2]]);
});

test("what waits until its time is up does not use up the time of the rest", async () => {
  let now = 0;
  const done: number[] = [];
  const worker = sweeping(
    {
      name: "test",
      everyMs: 1,
      list: async () => Array.from({ length: 12 }, (_, i) => ({ _id: i + 1 })),
      work: async ({ _id }, { deadline }) => {
        if (now >= deadline) throw new Error("too late");
        if (_id > 10) return done.push(_id);
        now += 1_000;
        throw new Error("a peer hangs");
      },
    },
    { clock: () => now, random: () => 0 },
  );
  await worker.sweep(100).catch(() => {});
  expect(done).toEqual([11, 12]);
});

test("what has expired is removed until there is no more of it", async () => {
  let expired = 250;
  const remove = async (limit: number) => {
    const batch = Math.min(limit, expired);
    expired -= batch;
    return batch;
  };
  expect(await removing("test", remove, { clock: () => 0, random: () => 0 }).sweep(100)).toBe(250);
});

test("a failure does not stop the others, and is told", async () => {
  const { worker } = setUp([1, 2], [1]);
  await expect(worker.sweep(2)).rejects.toMatchObject({
    message: "1 of 2 are left for another run",
    cause: { message: "1 can't be finished" },
  });
  expect(await worker.sweep(2)).toBe(0);
});
