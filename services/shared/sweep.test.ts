import { expect, test } from "vitest";
import { sweeping } from "./sweep.ts";

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

test("a failure does not stop the others, and is told", async () => {
  const { worker } = setUp([1, 2], [1]);
  await expect(worker.sweep(2)).rejects.toMatchObject({
    message: "1 of 2 are left for another run",
    cause: { message: "1 can't be finished" },
  });
  expect(await worker.sweep(2)).toBe(0);
});
