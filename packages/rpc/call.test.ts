import { REQUEST_ID_HEADER } from "connect-transcoder/request-id";
import { expect, test } from "vitest";
import { CALLER_HEADER, outgoing } from "./call.ts";
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
