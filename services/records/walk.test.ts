import { expect, test } from "vitest";
import { walk } from "./walk.ts";

/** Documents 1 to 10, of which the even ones are old. A batch takes as long as `batchMs` says. */
function documents(batchMs: () => number) {
  let now = 0;
  const rests: number[] = [];
  const passed: (number | undefined)[] = [];
  const call = { deadline: 1, requestId: "r", caller: "ann", progress: { hasBegun: false } };
  const go = (options: Partial<Parameters<typeof walk>[1]> = {}) =>
    walk<{ readonly _id: number }>(
      {
        list: async (after = 0, limit) => {
          now += batchMs();
          return Array.from({ length: 10 }, (_, i) => ({ _id: i + 1 })).slice(after, after + limit);
        },
        isOld: ({ _id }) => _id % 2 === 0,
        rewrite: async () => {},
        passed: async (last) => void passed.push(last),
      },
      { limit: 4, call: () => call, ...options },
      {
        clock: () => now,
        async sleep(ms) {
          rests.push(ms);
          now += ms;
        },
      },
    );
  return { go, rests, passed };
}

test("after each batch it rests for as long as that took", async () => {
  let batch = 0;
  const { go, rests, passed } = documents(() => 10 ** ++batch);
  expect(await go()).toBe(5);
  expect([rests, passed]).toEqual([
    [10, 100],
    [4, 8, undefined],
  ]);
});

test("it begins where it is told to, and makes no more batches than it is told to, with no rest behind the last", async () => {
  const { go, rests, passed } = documents(() => 1);
  expect(await go({ after: 2, most: 1 })).toBe(2);
  expect([rests, passed]).toEqual([[], [6]]);
});
