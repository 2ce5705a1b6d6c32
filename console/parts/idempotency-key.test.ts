import { PetstoreError } from "@petstore/client";
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

const failed = (code: string, status: number) => new PetstoreError(code, "what to do", { status });

test.each([
  ["UNREACHABLE", 0],
  ["CANCELLED", 0],
  ["UNAVAILABLE", 503],
  ["DEADLINE_EXCEEDED", 504],
] as const)(
  "a form that is sent again after %s has the same key, with other values another one",
  async (code, status) => {
    const lost = failed(code, status);
    expect(await keysOf([rex, lost], [rex, lost], [{ name: "Max" }, lost], [rex])).toEqual(["1", "1", "2", "3"]);
  },
);

test.each([
  ["CATEGORY_NOT_FOUND", 404],
  ["INSUFFICIENT_STOCK", 409],
] as const)("after %s it has another one: the old key would be answered with that for a day", async (code, status) => {
  expect(await keysOf([rex, failed(code, status)], [rex])).toEqual(["1", "2"]);
});

test("after success it has another one", async () => {
  expect(await keysOf([rex], [rex])).toEqual(["1", "2"]);
});

test.each([
  ["RATE_LIMITED", 429],
  ["UNAUTHENTICATED", 401],
  ["CONCURRENT_UPDATE", 409],
] as const)("%s says nothing of an earlier attempt, whose key is kept", async (code, status) => {
  const lost = failed("UNREACHABLE", 0);
  expect(await keysOf([rex, lost], [rex, failed(code, status)], [rex])).toEqual(["1", "1", "1"]);
});
