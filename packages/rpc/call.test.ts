import { REQUEST_ID_HEADER } from "connect-transcoder/request-id";
import { expect, test } from "vitest";
import { CALLER_HEADER, deadlineAfter, outgoing } from "./call.ts";
import { DeadlineExpired } from "./errors.ts";

const callContext = { deadline: 5_000, requestId: "r-1", caller: "ann", progress: { hasBegun: false } };

test.each([
  [0, 3_000],
  [2_000, 3_000],
  [4_200, 800],
  [4_999, 1],
])("a call to another service at %i ms may take %i ms", (now, timeoutMs) => {
  expect(outgoing(() => now, callContext)).toEqual({
    timeoutMs,
    headers: { [REQUEST_ID_HEADER]: "r-1", [CALLER_HEADER]: "ann" },
  });
});

test.each([5_000, 5_000 + 7 * 24 * 3_600_000])("at %i ms nobody is called any more", (now) => {
  expect(() => outgoing(() => now, callContext)).toThrow(DeadlineExpired);
});

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
