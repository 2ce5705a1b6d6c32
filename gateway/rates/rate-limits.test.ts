import { expect, test } from "vitest";
import { createRateLimits } from "./rate-limits.ts";

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
