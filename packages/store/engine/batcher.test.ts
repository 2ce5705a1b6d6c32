import { setImmediate as tick } from "node:timers/promises";
import { expect, test } from "vitest";
import { createBatcher, type Process } from "./batcher.ts";

/** A batcher, and the batches that it has handed over, as "key: items". */
function recorded(process: Process<string, number> = () => [], maxBatch?: number) {
  const batches: string[] = [];
  const enter = createBatcher<string, { readonly item: number }, void>((key, batch) => {
    const items = batch.map(({ item }) => item);
    batches.push(`${key}: ${items.join(" ")}`);
    const left = (rest: readonly number[]) => batch.filter(({ item }) => rest.includes(item));
    const rest = process(key, items);
    return rest instanceof Promise ? rest.then(left) : left(rest);
  }, maxBatch);
  return { add: (key: string, item: number) => void enter(key, { item }), batches };
}

test("what is asked for in one tick is one batch of each key, at the end of the tick", async () => {
  const { add, batches } = recorded();
  for (const item of [1, 2, 3]) {
    add("a", item);
    add("b", -item);
    await Promise.resolve();
  }
  expect(batches).toEqual([]);
  await tick();
  add("a", 4);
  await tick();
  expect(batches).toEqual(["a: 1 2 3", "b: -1 -2 -3", "a: 4"]);
});

test("who is alone, as the one before was, does not wait for the end of the tick", async () => {
  const { add, batches } = recorded((key) => (key === "slow" ? new Promise(() => {}) : []));
  const soon = () => new Promise<void>((resolve) => process.nextTick(resolve));
  add("a", 1);
  await tick();
  add("a", 2);
  await soon();
  expect(batches).toEqual(["a: 1", "a: 2"]);
  add("a", 3);
  add("b", 4);
  await soon();
  expect(batches.slice(2)).toEqual(["a: 3"]);
  await tick();
  expect(batches.slice(3)).toEqual(["b: 4"]);
  add("slow", 5);
  await tick();
  add("a", 6);
  await soon();
  expect(batches.slice(4)).toEqual(["slow: 5"]);
});

test("a batch waits for the one before it of the same key, and takes all that came meanwhile", async () => {
  const first = Promise.withResolvers<readonly number[]>();
  const { add, batches } = recorded((_, [item]) => (item === 1 ? first.promise : []));
  add("a", 1);
  await tick();
  add("a", 2);
  await tick();
  add("a", 3);
  add("b", 4);
  await tick();
  expect(batches).toEqual(["a: 1", "b: 4"]);
  first.resolve([]);
  await tick();
  await tick();
  expect(batches).toEqual(["a: 1", "b: 4", "a: 2 3"]);
});

test("those that did not get their turn begin the next batch", async () => {
  const { add, batches } = recorded((_, batch) => batch.slice(1));
  for (const item of [1, 2, 3]) add("a", item);
  for (let i = 0; i < 4; i++) await tick();
  expect(batches).toEqual(["a: 1 2 3", "a: 2 3", "a: 3"]);
});

test("a batch has a bound, and others get their turn between two of them", async () => {
  const { add, batches } = recorded(() => [], 2);
  for (const item of [1, 2, 3]) add("a", item);
  await tick();
  expect(batches).toEqual(["a: 1 2"]);
  add("b", 4);
  for (let i = 0; i < 2; i++) await tick();
  expect(batches.toSorted()).toEqual(["a: 1 2", "a: 3", "b: 4"]);
});
