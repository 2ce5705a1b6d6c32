import { expect, test } from "vitest";
import { deadlineAfter } from "./call.ts";

let now = 0;
const clock = () => now;

test("what remains becomes less as time passes", () => {
  now = 1_000;
  const deadline = deadlineAfter(clock, 500);
  expect([deadline.at, deadline.remaining(), deadline.timeoutMs()]).toEqual([1_500, 500, 500]);
  now = 1_499;
  expect([deadline.remaining(), deadline.timeoutMs()]).toEqual([1, 1]);
});

test("a call that is made too late is given 1 ms: no limit would be 0", () => {
  now = 1_000;
  const deadline = deadlineAfter(clock, 500);
  now = 2_000;
  expect([deadline.remaining(), deadline.timeoutMs()]).toEqual([-500, 1]);
});

test("without a limit there is always time, and a call is given no limit either", () => {
  const deadline = deadlineAfter(clock);
  expect([deadline.remaining(), deadline.timeoutMs()]).toEqual([Number.POSITIVE_INFINITY, undefined]);
});
