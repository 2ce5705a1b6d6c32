/** HISTORY_RUNS says how many, HISTORY_SEED which. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { historyRuns, historySeed } from "../workload/runs.ts";
import { meeting } from "./histories/meeting.ts";

// Deadlines are the simulation's own: real time must not end a call.
beforeAll(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterAll(() => void vi.useRealTimers());

test(`operations that meet leave nothing lost, doubled or stuck (HISTORY_SEED=${historySeed} HISTORY_RUNS=${historyRuns})`, async () => {
  await fc.assert(
    fc.asyncProperty(meeting.arbitrary, async (history) => {
      expect(await meeting.run(history, () => {})).toEqual([]);
    }),
    { numRuns: 10 * historyRuns, seed: historySeed },
  );
}, 600_000);
