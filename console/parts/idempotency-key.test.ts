import { Code, ConnectError } from "@connectrpc/connect";
import type { Reason } from "@petstore/client";
import { expect, test } from "vitest";
import { createKeys } from "./idempotency-key.ts";

const rex = { name: "Rex" };

/** Sends these forms, each answered with the error beside it, or with success. Returns their keys. */
async function keysOf(...sent: readonly (readonly [form: object, error?: Error])[]): Promise<string[]> {
  let count = 0;
  const underKey = createKeys(() => `${++count}`);
  const keys: string[] = [];
  for (const [form, error] of sent) {
    const answer = underKey(form, async (key) => {
      keys.push(key);
      if (error) throw error;
    });
    await (error ? expect(answer).rejects.toBe(error) : answer);
  }
  return keys;
}

const failed = (reason: Reason, code: Code) =>
  Object.assign(new Error("what to do"), { name: "PetstoreError", reason, cause: new ConnectError("", code) });

test.each([
  ["UNREACHABLE", Code.Unknown],
  ["CANCELLED", Code.Canceled],
  ["UNAVAILABLE", Code.Unavailable],
  ["DEADLINE_EXCEEDED", Code.DeadlineExceeded],
] as const)(
  "a form that is sent again after %s has the same key, with other values another one",
  async (reason, code) => {
    const lost = failed(reason, code);
    expect(await keysOf([rex, lost], [rex, lost], [{ name: "Max" }, lost], [rex])).toEqual(["1", "1", "2", "3"]);
  },
);

test.each([
  ["CATEGORY_NOT_FOUND", Code.NotFound],
  ["INSUFFICIENT_STOCK", Code.FailedPrecondition],
] as const)("after %s it has another one: the old key would be answered with that for a day", async (reason, code) => {
  expect(await keysOf([rex, failed(reason, code)], [rex])).toEqual(["1", "2"]);
});

test("after success it has another one", async () => {
  expect(await keysOf([rex], [rex])).toEqual(["1", "2"]);
});

test.each([
  ["RATE_LIMITED", Code.ResourceExhausted],
  ["UNAUTHENTICATED", Code.Unauthenticated],
  ["CONCURRENT_UPDATE", Code.Aborted],
] as const)("%s says nothing of an earlier attempt, whose key is kept", async (reason, code) => {
  const lost = failed("UNREACHABLE", Code.Unknown);
  expect(await keysOf([rex, lost], [rex, failed(reason, code)], [rex])).toEqual(["1", "1", "1"]);
});
