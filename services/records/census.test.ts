import { describe, expect, test } from "vitest";
import { type Countable, createCensus, type Unfinished } from "./census.ts";

const signal = new AbortController().signal;

/** Lists like a collection, in pages. */
const listOf =
  <T extends { readonly _id: number }>(all: () => readonly T[]): ((page: never) => Promise<readonly T[]>) =>
  async ({ after = 0, limit }: { after?: number; limit: number }) =>
    all()
      .filter(({ _id }) => _id > after)
      .slice(0, limit);
const many = (count: number) => Array.from({ length: count }, (_, i) => ({ _id: i + 1 }));

function start(countable: Partial<Record<keyof Countable, unknown>>) {
  let now = 1_000;
  const pauses: number[] = [];
  const sleep = async (ms: number) => void pauses.push(ms);
  const deps = { clock: () => now, random: () => 0.5, sleep };
  const census = createCensus({ tombstones: listOf(() => []), ...countable } as never, deps);
  const look = () => census.look(signal);
  const run = () => census.run(signal);
  const pass = (ms: number) => {
    now += ms;
  };
  return { ...census, look, run, pass, pauses };
}

test("nothing is known before all of it was counted once", () => {
  const { found } = start({ pending: listOf(() => []), keys: listOf(() => []) });
  expect(found).toMatchObject({ pending: undefined, tombstones: undefined, keys: undefined });
  expect(found.oldestMs()).toBeUndefined();
});

test("all pages are counted, with a pause between them", async () => {
  const { found, run, pauses } = start({ tombstones: listOf(() => many(250)), keys: listOf(() => many(100)) });
  await run();
  expect(found).toMatchObject({ pending: undefined, tombstones: 250, keys: 100 });
  expect(pauses).toEqual([100, 100, 100]);
});

test("a stop ends it", async () => {
  const { run } = start({
    tombstones: listOf(() => many(1_000)),
  });
  await run();
  const stopped = createCensus(
    { tombstones: listOf(() => many(1_000)) as never },
    { clock: () => 0, random: () => 0, sleep: () => Promise.reject(new Error("stopped")) },
  );
  await expect(stopped.run(signal)).rejects.toThrow("stopped");
});

describe("what is pending", () => {
  test("is counted by its state, also once there is none any more", async () => {
    let all: Unfinished[] = [
      { _id: 1, state: "CREATING", step: 1 },
      { _id: 2, state: "ACTIVE", step: 4 },
      { _id: 3, state: "ACTIVE", step: 7 },
    ];
    const states = ["CREATING", "ACTIVE", "OTHER"];
    const { found, look } = start({ states, pending: listOf(() => all as never[]) });
    await look();
    const counts = () => Object.fromEntries(found.pending ?? []);
    expect(counts()).toEqual({ CREATING: 1, ACTIVE: 2, OTHER: 0 });
    all = all.slice(2);
    await look();
    expect(counts()).toEqual({ CREATING: 0, ACTIVE: 1, OTHER: 0 });
  });

  test("is as old as it was seen at the same step", async () => {
    let all: Unfinished[] = [{ _id: 1, state: "ACTIVE", step: 1 }];
    const { found, look, pass } = start({ pending: listOf(() => all as never[]) });
    await look();
    pass(30_000);
    await look();
    expect(found.oldestMs()).toBe(30_000);
    all = [
      { _id: 1, state: "ACTIVE", step: 2 },
      { _id: 2, state: "ACTIVE", step: 1 },
    ];
    await look();
    expect(found.oldestMs()).toBe(0);
    pass(10_000);
    await look();
    expect(found.oldestMs()).toBe(10_000);
    all = [];
    await look();
    expect(found.oldestMs()).toBe(0);
  });

  test("grows no older while nobody has looked again, or could", async () => {
    let list = async (): Promise<readonly Unfinished[]> => [{ _id: 1, state: "ACTIVE", step: 1 }];
    const { found, look, run, pass } = start({ pending: () => list() });
    await look();
    pass(1_000);
    await look();
    pass(600_000);
    await run();
    expect(found.oldestMs()).toBe(1_000);
    list = () => Promise.reject(new Error("down"));
    await expect(look()).rejects.toThrow("down");
    expect(found.oldestMs()).toBe(1_000);
  });
});
