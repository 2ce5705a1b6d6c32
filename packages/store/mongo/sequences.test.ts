/** When numbers are taken, which of them are given, and what goes back. */
import { setImmediate as tick } from "node:timers/promises";
import { MongoNetworkError } from "mongodb";
import { afterEach, expect, test, vi } from "vitest";
import { Unavailable } from "../port.ts";
import type { Database } from "./database.ts";
import type { Call } from "./deadline.ts";
import { createSequences, numbersAtHand } from "./sequences.ts";

afterEach(() => void vi.useRealTimers());

type Increment = [{ $set: { last: { $add: [{ $max: [string, number] }, number] } } }];

const call = (): Call => ({ isOver: false, inDoubt: false, failure: undefined, remaining: () => 1_000 });

/** A database with one counter, and any number of processes on it. Commands wait for `answer` while they are held. */
function bench() {
  let now = 0;
  let isHeld = false;
  const held: (() => void)[] = [];
  let failures = 0;
  const database = { counter: undefined as number | undefined };
  const log: string[] = [];
  async function reached(command: string) {
    log.push(command);
    await new Promise<void>((go) => (isHeld ? held.push(go) : setImmediate(go)));
    if (failures > 0) {
      failures--;
      throw new MongoNetworkError("cut");
    }
  }
  const counters = {
    async findOneAndUpdate(_: object, [{ $set }]: Increment) {
      const [{ $max }, count] = $set.last.$add;
      await reached(`take ${count}`);
      const before = database.counter;
      database.counter = Math.max(before ?? 0, $max[1]) + count;
      return before === undefined ? null : { last: before };
    },
    async findOne() {
      await reached("read");
      return database.counter === undefined ? null : { last: database.counter };
    },
    async updateOne({ last }: { last: number }, { $set }: { $set: { last: number } }) {
      await reached("give back");
      if (database.counter === last) database.counter = $set.last;
    },
  };
  return {
    log,
    database,
    wait(ms: number) {
      now += ms;
    },
    held,
    hold() {
      isHeld = true;
    },
    answer() {
      isHeld = false;
      for (const go of held.splice(0)) go();
    },
    fail(times: number) {
      failures = times;
    },
    /** A process of its own. */
    start() {
      const inSession = (commands: (session: object) => unknown) => commands({});
      const db = { collection: () => counters };
      const timing = { clock: () => now, random: () => 0, sleep: () => tick() };
      const sequences = createSequences({ db, inSession } as unknown as Database, timing, {
        warn: (message: string) => void log.push(message),
      } as never);
      return {
        next: (above?: number, asking = call()) => sequences.next("ids", asking, above),
        /** So many at once. */
        many: (count: number) => Promise.all(Array.from({ length: count }, () => sequences.next("ids", call()))),
        close: () => sequences.close(),
      };
    },
  };
}
/** Until what follows an answer is over. */
async function rest(): Promise<void> {
  for (let i = 0; i < 9; i++) await tick();
}

test("on a quiet petstore one number is at hand, which is given without a command; the next is taken behind it", async () => {
  const { log, start, hold, answer, database } = bench();
  const { next } = start();
  expect(await next()).toBe(1);
  await rest();
  expect(log).toEqual(["take 2"]);
  for (const number of [2, 3, 4]) {
    hold();
    expect(await next()).toBe(number);
    answer();
    await rest();
  }
  expect(log).toEqual(["take 2", "take 1", "take 1", "take 1"]);
  expect(database.counter).toBe(5);
});

test("all that are asked for at once are taken with one command, and no more than one ahead", async () => {
  const { log, start } = bench();
  const { many } = start();
  expect(await many(500)).toEqual(Array.from({ length: 500 }, (_, i) => i + 1));
  await rest();
  expect(log).toEqual(["take 501"]);
});

test("who comes while numbers are taken is served by the next command, and under a steady load nobody waits", async () => {
  const { log, start, held, hold } = bench();
  const { next } = start();
  const given: number[] = [];
  const waited: number[] = [];
  const sentAt: number[] = [];
  hold();
  for (let i = 0; i < 400; i++) {
    void next().then((number) => given.push(number));
    await tick();
    waited.push(i + 1 - given.length);
    // Each command takes as long as ten callers.
    while (sentAt.length < held.length) sentAt.push(i);
    for (; Number(sentAt[0]) <= i - 10; sentAt.shift()) held.shift()?.();
  }
  expect(waited.slice(0, 10)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(waited.slice(100)).toEqual(waited.slice(100).map(() => 0));
  expect(given).toEqual(given.toSorted((a, b) => a - b));
  expect(new Set(given).size).toBe(400);
  expect(log.length).toBeLessThan(50);
});
test("however many ask while numbers are taken, a few hundred at most are at hand", async () => {
  const { database, start, hold, answer } = bench();
  const { next, many } = start();
  hold();
  void next();
  await rest();
  const asked = many(10_000);
  answer();
  await asked;
  await rest();
  expect(database.counter).toBe(10_001 + 256);
});

test("a number that was at hand for 10 s is given if the counter still stands at it, after one read", async () => {
  const { log, start, wait } = bench();
  const { next } = start();
  expect(await next()).toBe(1);
  await rest();
  wait(9_999);
  expect(await next()).toBe(2);
  await rest();
  expect(log.splice(0)).toEqual(["take 2", "take 1"]);
  wait(10_000);
  expect(await next()).toBe(3);
  await rest();
  expect(log.splice(0)).toEqual(["read", "take 1"]);
  expect(await next()).toBe(4);
});

test("the time in which it was taken counts", async () => {
  const { log, start, wait, hold, answer } = bench();
  const { next } = start();
  hold();
  const first = next();
  await rest();
  wait(10_000);
  answer();
  expect([await first, await next()]).toEqual([1, 2]);
  expect(log.slice(0, 2)).toEqual(["take 2", "read"]);
});

test("it is dropped if another process has taken numbers meanwhile", async () => {
  const { log, start, wait } = bench();
  const [one, other] = [start(), start()];
  expect(await one.next()).toBe(1);
  await rest();
  expect(await other.next()).toBe(3);
  await rest();
  wait(10_000);
  expect(await one.next()).toBe(5);
  await rest();
  expect(log).toEqual(["take 2", "take 2", "read", "take 2"]);
});

test("of several only those are given that the counter still stands at: others may have given numbers between", () => {
  const atHand = numbersAtHand();
  atHand.add(0, 3, 0);
  expect(atHand.give()).toBe(1);
  atHand.add(5, 2, 5_000);
  expect([atHand.count, atHand.isOld(9_999), atHand.isOld(10_000)]).toEqual([4, false, true]);
  atHand.confirm(7, 10_000);
  expect([atHand.count, atHand.isOld(19_999), atHand.give(), atHand.give()]).toEqual([2, false, 6, 7]);
  expect(atHand.give()).toBeUndefined();
});

test("numbers that follow one another are as old as the first of them", () => {
  const atHand = numbersAtHand();
  atHand.add(0, 1, 0);
  atHand.add(1, 1, 5_000);
  expect([atHand.isOld(10_000), atHand.newest()]).toEqual([true, { next: 1, last: 2, since: 0 }]);
});

test("numbers up to one that is in use are dropped, also those that are just being taken", async () => {
  const { database, start, hold, answer } = bench();
  const { next, many } = start();
  expect(await many(3)).toEqual([1, 2, 3]); // 4 is at hand
  expect(await next(3)).toBe(4);
  await rest(); // 5 is at hand
  hold();
  const asked = [next(7), next()];
  await rest();
  asked.push(next(20), next());
  answer();
  const given = await Promise.all(asked);
  expect(given[0]).toBeGreaterThan(20);
  expect(new Set(given).size).toBe(4);
  expect(Math.min(...given)).toBeGreaterThan(20);
  await rest();
  const taken = Number(database.counter);
  expect(await next(taken)).toBe(taken + 1);
});

test("numbers that are not above one in use are dropped, also those that were taken before it was known", () => {
  const atHand = numbersAtHand();
  atHand.add(0, 9, 0);
  atHand.drop(4);
  expect([atHand.give(), atHand.count, atHand.highest]).toEqual([5, 4, 9]);
  atHand.drop(12);
  expect([atHand.give(), atHand.highest]).toEqual([undefined, 12]);
  atHand.add(9, 2, 0);
  expect([atHand.give(), atHand.highest]).toEqual([undefined, 12]);
  atHand.add(11, 3, 0);
  expect([atHand.give(), atHand.count, atHand.highest]).toEqual([13, 1, 14]);
});
test("what is at hand goes back when the store is closed, and is given at the next start", async () => {
  const { database, start } = bench();
  const one = start();
  expect(await one.many(3)).toEqual([1, 2, 3]);
  await rest();
  expect(database.counter).toBe(4);
  await one.close();
  expect(database.counter).toBe(3);
  const again = start();
  expect([await again.next(), await again.next()]).toEqual([4, 5]);
});

test("what is being taken when the store is closed goes back as well", async () => {
  const { database, log, start, hold, answer } = bench();
  const one = start();
  expect(await one.next()).toBe(1);
  await rest();
  hold();
  expect(await one.next()).toBe(2);
  await rest();
  const closed = one.close();
  answer();
  await closed;
  expect(log).toEqual(["take 2", "take 1", "give back"]);
  expect(database.counter).toBe(2);
});

test("a store that is closed takes no more", async () => {
  const { log, start } = bench();
  const one = start();
  expect([await one.next(), await one.next()]).toEqual([1, 2]);
  await one.close();
  await rest();
  expect(log).toEqual(["take 2"]);
});
test("nothing goes back where another process has taken numbers above it", async () => {
  const { database, start } = bench();
  const [one, other] = [start(), start()];
  await one.next();
  await rest();
  expect(await other.next()).toBe(3);
  await rest();
  await one.close();
  expect(database.counter).toBe(4);
  await other.close();
  expect(database.counter).toBe(3);
});

test("giving back is not repeated, for others may have taken the same numbers by then", async () => {
  const { log, start, fail } = bench();
  const one = start();
  await one.next();
  await rest();
  fail(1);
  await one.close();
  expect(log).toEqual(["take 2", "give back"]);
});

test("a store closes though the database does not answer", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { start, hold } = bench();
  const one = start();
  await one.next();
  await rest();
  hold();
  const closed = one.close();
  await vi.advanceTimersByTimeAsync(2_000);
  await closed;
});

test("a failure behind an answer harms nobody, and whoever waits is served by another attempt", async () => {
  const { log, start, fail } = bench();
  const { next } = start();
  expect(await next()).toBe(1);
  await rest();
  fail(1);
  expect(await next()).toBe(2);
  await rest();
  expect(log).toEqual(["take 2", "take 1"]);
  fail(2);
  expect(await next()).toBe(3);
  expect(log).toEqual(["take 2", "take 1", "take 2", "take 2", "take 2"]);
});

test("who waits in vain is told so, and takes no number from others", async () => {
  const { start, fail, hold, answer } = bench();
  const { next } = start();
  const late = { ...call(), isOver: false };
  hold();
  const asked = expect(next(0, late)).rejects.toThrow(Unavailable);
  await rest();
  late.isOver = true;
  fail(1);
  answer();
  await asked;
  void next(0, late);
  expect(await next()).toBe(1);
});
test("a counter that was dropped or restored goes on above what was taken", async () => {
  const { database, log, start } = bench();
  const { next } = start();
  expect(await next()).toBe(1);
  await rest();
  database.counter = undefined;
  expect(await next()).toBe(2);
  await rest();
  expect(await next()).toBe(3);
  expect(log).toEqual(["take 2", "take 1", expect.stringContaining("goes on after 2")]);
  await rest();
  expect(database.counter).toBe(4);
});

test("going on above a number is no restored counter", async () => {
  const { log, start } = bench();
  const { next } = start();
  expect([await next(100), await next()]).toEqual([101, 102]);
  await rest();
  expect(log).toEqual(["take 2", "take 1"]);
});
