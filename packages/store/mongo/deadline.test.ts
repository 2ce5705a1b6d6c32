import { realTime } from "@petstore/runtime/clock";
import { MongoError, MongoNetworkError } from "mongodb";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type ReadLimits, retryUntilDeadline, whileAwaited, withDeadline, withTimeout } from "./deadline.ts";

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

test("a call whose signal aborts is over", async () => {
  const caller = new AbortController();
  const work = async (call: { readonly isOver: boolean }) => {
    const before = call.isOver;
    caller.abort();
    return [before, call.isOver];
  };
  const seen = await withDeadline({ deadline: Date.now() + 1_000 }, Date.now, work, caller.signal);
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

describe("a read of several callers", () => {
  const waits = (ms: number, isOver = false) => ({ isOver, remaining: () => ms });
  const never = new Promise<never>(() => {});

  /** The limits of a read that does not end. */
  function begun(by: Parameters<typeof whileAwaited>[0]): ReadLimits {
    let given: ReadLimits | undefined;
    void whileAwaited(by, (limits) => {
      given = limits;
      return never;
    });
    return given as ReadLimits;
  }

  test.each([
    ["may take as long as the last of those who wait", [waits(100), waits(2_000.4), waits(300)], 2_001],
    ["not as long as one who has left", [waits(100), waits(2_000, true)], 100],
    ["not longer than the driver is waited for", [waits(30_000)], 6_000],
    ["not without a limit, which MongoDB writes as 0", [waits(-5)], 1],
  ])("%s", (_, by, expected) => {
    expect(begun(by).maxTimeMS()).toBe(expected);
  });

  test("is ended when all have left, and not before", async () => {
    const by = [waits(2_000), waits(2_000)];
    const { signal } = begun(by);
    for (const one of by) {
      expect(signal.aborted).toBe(false);
      one.isOver = true;
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBeInstanceOf(MongoError);
  });

  test("is not ended while it is young, for that costs a connection", async () => {
    const by = [waits(2_000)];
    const { signal } = begun(by);
    for (const one of by) one.isOver = true;
    await vi.advanceTimersByTimeAsync(400);
    expect(signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(200);
    expect(signal.aborted).toBe(true);
  });
});
