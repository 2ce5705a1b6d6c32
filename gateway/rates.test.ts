import { expect, test } from "vitest";
import { createLatest, createRateLimits, limitFailedCredentials } from "./rates.ts";

const rate = { requests: 60, windowMs: 60_000, burst: 2 };

test("each caller has a rate of its own", () => {
  const limits = createRateLimits(rate, { clock: () => 0 });
  expect(["ann", "ann", "ann", "bob"].map((caller) => limits.count(caller)?.allowed)).toEqual([
    true,
    true,
    false,
    true,
  ]);
});

test("a caller may have another one", () => {
  const limits = createRateLimits(rate, { clock: () => 0 });
  const own = { ...rate, burst: 3 };
  expect([1, 2, 3, 4].map(() => limits.count("ann", own)?.allowed)).toEqual([true, true, true, false]);
});

test("looking counts nothing", () => {
  const limits = createRateLimits(rate, { clock: () => 0 });
  expect([1, 2, 3].map(() => limits.peek("ann")?.remaining)).toEqual([1, 1, 1]);
});

test("of too many callers, those that were silent for longest are forgotten", () => {
  const limits = createRateLimits(rate, { clock: () => 0, maxCallers: 4 });
  for (const caller of ["ann", "bob", "cid", "ann", "dan"]) limits.count(caller);
  expect(["dan", "cid", "bob", "ann"].map((caller) => limits.peek(caller)?.remaining)).toEqual([0, 0, 1, 0]);
});

test("without a rate, only those are counted who have one of their own", () => {
  const limits = createRateLimits(undefined, { clock: () => 0 });
  expect([1, 2, 3].map(() => limits.count("ann"))).toEqual([undefined, undefined, undefined]);
  expect([1, 2, 3].map(() => limits.count("bob", rate)?.allowed)).toEqual([true, true, false]);
});

test("the last half is always remembered, and never more than the whole", () => {
  const latest = createLatest<number>(10);
  for (let i = 0; i < 100; i++) {
    latest.set(`${i}`, i);
    const known = Array.from({ length: i + 1 }, (_, key) => latest.get(`${key}`)).filter(
      (value) => value !== undefined,
    );
    expect(known.length).toBeLessThanOrEqual(10);
    expect(known.slice(-5)).toEqual([4, 3, 2, 1, 0].map((back) => i - back).filter((value) => value >= 0));
  }
});

test("what is set again and again is remembered, by its last value, until it is deleted", () => {
  const latest = createLatest<number>(4);
  for (let i = 0; i < 20; i++) {
    latest.set("again", i);
    latest.set(`${i}`, i);
    expect(latest.get("again")).toBe(i);
  }
  latest.delete("again");
  expect(latest.get("again")).toBeUndefined();
});

test("of too many valid access tokens, those that were last used longest ago are forgotten", () => {
  const limit = limitFailedCredentials(() => "192.0.2.1", { clock: () => 0 });
  const request = {} as never;
  const token = (i: number) => ({ authorization: `Bearer t${i}`, apiKey: undefined });
  for (let i = 0; i <= 10_000; i++) {
    limit.succeed(token(i));
    limit.succeed(token(0));
  }
  limit.fail(request, token(-1));
  for (let i = 0; i < 50; i++) limit.begin(request, token(-1));
  const isKnown = (i: number) => {
    try {
      limit.begin(request, token(i));
      return true;
    } catch {
      return false;
    }
  };
  expect([-1, 0, 1, 5001, 10_000].map(isKnown)).toEqual([false, true, false, true, true]);
});
