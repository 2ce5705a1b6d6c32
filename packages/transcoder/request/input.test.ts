/** The time that headers give a request. How messages are read is tested part by part, as in parameters.test.ts. */
import { describe, expect, test } from "vitest";
import { TIMEOUT_HEADERS, timeoutReader } from "./input.ts";

describe("timeouts", () => {
  const read = timeoutReader(TIMEOUT_HEADERS, 30_000);

  test.each([
    [{}, 30_000],
    [{ "x-server-timeout": "2.5" }, 2500],
    [{ "x-server-timeout": "0.5" }, 500],
    [{ "x-server-timeout": "99" }, 30_000],
    [{ "grpc-timeout": "1H" }, 30_000],
    [{ "grpc-timeout": "2S" }, 2000],
    [{ "grpc-timeout": "00000500m" }, 500],
    [{ "grpc-timeout": "1500u" }, 1.5],
    [{ "grpc-timeout": "1000n" }, 0.001],
    [{ "grpc-timeout": "3S", "x-server-timeout": "2" }, 2000],
    [{ "grpc-timeout": "1S", "x-server-timeout": "2" }, 1000],
  ])("%j is %d ms", (headers, ms) => {
    expect(read(headers)).toBeCloseTo(ms, 9);
  });

  test.each(["", "1", "S", "0S", "-1S", "1.5S", "123456789S", "1s", "1 S", "1S, 2S"])(
    "Grpc-Timeout can't be %j",
    (value) => {
      expect(() => read({ "grpc-timeout": value })).toThrow(/^Grpc-Timeout: must be up to eight digits/);
    },
  );

  test.each(["", "0", "-1", "1e3", ".5", "1S"])("X-Server-Timeout can't be %j", (value) => {
    expect(() => read({ "x-server-timeout": value })).toThrow(/^X-Server-Timeout: must be a decimal number/);
  });

  test("a header that is not looked at says nothing", () => {
    expect(timeoutReader(["X-Server-Timeout"], 10_000)({ "grpc-timeout": "?" })).toBe(10_000);
  });
});
