import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { merge } from "./merge.ts";

/** Endless, and always ready. */
function endless(name: string) {
  let asked = 0;
  const stream = (async function* () {
    for (;;) yield `${name}${++asked}`;
  })();
  return { stream, asked: () => asked };
}

test("streams that are always ready take turns, and none is asked for more than was taken of it", async () => {
  const all = ["a", "b", "c"].map(endless);
  const merged = merge(all.map(({ stream }) => stream));
  const taken: string[] = [];
  for (let i = 0; i < 9; i++) taken.push((await merged.next()).value as string);
  expect(taken.toSorted()).toEqual(["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"]);
  for (let i = 0; i < 20; i++) await turn();
  for (const { asked } of all) expect(asked()).toBeLessThanOrEqual(4);
});

test("one that is silent holds up no other", async () => {
  const silent = { next: () => new Promise<IteratorResult<string>>(() => {}) };
  const merged = merge([silent, endless("a").stream]);
  expect([(await merged.next()).value, (await merged.next()).value]).toEqual(["a1", "a2"]);
});

test("it ends with the first that ends, and fails with the first that fails", async () => {
  const silent = { next: () => new Promise<IteratorResult<string>>(() => {}) };
  const ended = (async function* () {
    yield "last";
  })();
  const merged = merge([silent, ended]);
  expect((await merged.next()).value).toBe("last");
  expect((await merged.next()).done).toBe(true);
  const failing = { next: () => Promise.reject(new Error("broken")) };
  await expect(merge([silent, failing]).next()).rejects.toThrow("broken");
});
