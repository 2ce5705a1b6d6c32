import { realTime } from "@petstore/runtime/clock";
import { MongoNetworkError } from "mongodb";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { retryUntilDeadline, withDeadline, withTimeout } from "./deadline.ts";

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

test("a connection that the server has closed is a failure of the database, in whatever words, and a mistake is none", async () => {
  const closed = Object.assign(new Error("This socket has been ended by the other party"), { code: "EPIPE" });
  await expect(withTimeout("repeatable", Promise.reject(closed))).rejects.toBeInstanceOf(MongoNetworkError);
  const call = { isOver: false, inDoubt: false, failure: undefined };
  let calls = 0;
  const attempt = () =>
    withTimeout("repeatable", ++calls === 1 ? Promise.reject(closed) : Promise.resolve("an answer"));
  const answer = retryUntilDeadline(call, { ...realTime, sleep: async () => {} }, attempt);
  await expect(answer).resolves.toBe("an answer");
  const mistake = Object.assign(new TypeError("a mistake"), { code: "ERR_INVALID_ARG_TYPE" });
  await expect(withTimeout("repeatable", Promise.reject(mistake))).rejects.toBe(mistake);
});
