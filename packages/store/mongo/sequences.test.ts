/** Which numbers come from the database, which were taken ahead, and in which order. */
import { setImmediate as tick } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Database } from "./database.ts";
import { createSequences } from "./sequences.ts";

/** A database that any number of processes share, and how many numbers each command took. */
function bench() {
  const taken: number[] = [];
  let last = 0;
  let now = 0;
  const db = {
    collection: () => ({
      async findOneAndUpdate(_: object, { $inc }: { $inc: { last: number } }) {
        await tick();
        taken.push($inc.last);
        last += $inc.last;
        return { last };
      },
    }),
  };
  const database = { db, inSession: (calls: (session: object) => unknown) => calls({}) } as unknown as Database;
  const timing = { clock: () => now, random: () => 0, sleep: async () => {} };
  const call = () => ({ isOver: false, inDoubt: false, failure: undefined });
  return {
    taken,
    advance: (ms: number) => (now += ms),
    /** A process: asks for the next number, or for so many at once. */
    start() {
      const nextId = createSequences(database, timing);
      const next = (ahead: boolean) => nextId("orders", call(), { ahead });
      const many = (count: number, ahead = true) => Promise.all(Array.from({ length: count }, () => next(ahead)));
      return { next, many };
    },
  };
}

test("numbers in order take a command each, or one for all of a tick", async () => {
  const { taken, start } = bench();
  const { next, many } = start();
  expect([await next(false), await next(false), await many(3, false)]).toEqual([1, 2, [3, 4, 5]]);
  expect(taken).toEqual([1, 1, 3]);
});

test("twice as many are taken ahead as were asked for lately, 64 at most", async () => {
  const { taken, start } = bench();
  const { many } = start();
  const given: number[] = [];
  for (let i = 0; i < 200; i++) given.push(...(await many(1)));
  expect(given).toEqual(given.map((_, i) => i + 1));
  expect(taken).toEqual([1, 3, 7, 15, 31, 63, 65, 65]);
});

test("who asks now and then leaves no gaps, and what was taken ahead is used for a second", async () => {
  const { taken, advance, start } = bench();
  const { next } = start();
  for (let i = 1; i <= 3; i++) {
    expect(await next(true)).toBe(i);
    advance(1_000);
  }
  expect(taken).toEqual([1, 1, 1]);
  expect(await next(true)).toBe(4);
  expect(await next(true)).toBe(5);
  advance(1_000);
  expect(await next(true)).toBe(8);
});

test("a number in order is higher than all that any process was given before, and none comes twice", async () => {
  const { start } = bench();
  const [one, other] = [start(), start()];
  const given = [...(await one.many(20)), ...(await other.many(20))];
  given.push(...(await one.many(5)), ...(await other.many(5)));
  for (const { next } of [one, other, one]) {
    const number = await next(false);
    expect(number).toBeGreaterThan(Math.max(...given));
    given.push(number);
    given.push(...(await one.many(3)), ...(await other.many(30)));
  }
  expect(new Set(given).size).toBe(given.length);
});

test("what one process gives ascends, in order or not", async () => {
  const { start } = bench();
  const { many } = start();
  const given = [];
  for (const ahead of [true, true, false, true, false, true]) given.push(...(await many(7, ahead)));
  expect(given).toEqual(given.toSorted((a, b) => a - b));
});
