/** HISTORY_RUNS says how many, HISTORY_SEED which. `npm run simulate` runs many more, and tells how one fails. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { historyRuns, historySeed } from "../workload/runs.ts";
import { createCoverage, uncovered } from "./coverage.ts";
import { oneDay } from "./histories/one-day.ts";

// Deadlines are the simulation's own: real time must not end a call.
beforeAll(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterAll(() => void vi.useRealTimers());

test(`nothing is lost, doubled or stuck (HISTORY_SEED=${historySeed} HISTORY_RUNS=${historyRuns})`, async () => {
  const { coverage, witness } = createCoverage();
  await fc.assert(
    fc.asyncProperty(oneDay.arbitrary, async (history) => {
      expect(await oneDay.run(history, witness)).toEqual([]);
    }),
    { numRuns: historyRuns, seed: historySeed },
  );
  // Other kinds of histories come to the rest.
  expect(uncovered(coverage).filter((what) => !/^(jump of time|order .*|key .*)$/.test(what))).toEqual([]);
}, 600_000);
