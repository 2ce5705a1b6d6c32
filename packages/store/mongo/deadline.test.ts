import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { withDeadline } from "./deadline.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test.each([
  [100, 90],
  [3_000, 2_700],
  [10_000, 9_500],
])("who waits %i ms is told after %i ms, and can still pass on why", async (time, told) => {
  const started = Date.now();
  let settled = "";
  const answer = withDeadline({ deadline: started + time }, Date.now, () => new Promise<never>(() => {}));
  answer.catch(({ name }) => (settled = `${name} after ${Date.now() - started} ms`));
  await vi.advanceTimersByTimeAsync(time);
  expect(settled).toBe(`Unavailable after ${told} ms`);
});

test("a process that was stopped finds the time over by its clock, before its timers tell", async () => {
  let now = 0;
  const seen: boolean[] = [];
  const answer = withDeadline(
    { deadline: 1_000 },
    () => now,
    async (call) => {
      seen.push(call.isOver);
      now = 7 * 24 * 3_600_000;
      seen.push(call.isOver);
    },
  );
  await answer;
  expect(seen).toEqual([false, true]);
});
