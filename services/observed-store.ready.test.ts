import { expect, test } from "vitest";
import { canServe } from "./observed-store.ts";

/** A second that passes when the test says so. */
function second() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { time: { clock: () => 5, sleep: () => promise }, pass: resolve };
}
const never = new Promise<never>(() => {});

test("a store that answers can be served from, one that refuses can't", async () => {
  const deadlines: unknown[] = [];
  const ping = async (options: { deadline?: number } = {}) => void deadlines.push(options.deadline);
  expect(await canServe({ ping }, second().time)).toBe(true);
  expect(await canServe({ ping: () => Promise.reject(new Error("down")) }, second().time)).toBe(false);
  expect(deadlines).toEqual([1005]);
});

test("a store that hangs, as on a disk that does, can't be served from", async () => {
  const { time, pass } = second();
  const answer = canServe({ ping: () => never }, time);
  pass();
  expect(await answer).toBe(false);
});
