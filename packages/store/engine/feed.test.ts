import { setImmediate as tick } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Change, ChangesOptions } from "../port.ts";
import { createFeed, PAUSE_MS, type Source, WOKEN_TOGETHER } from "./feed.ts";

const change = (number: number): Change<number> => ({
  type: "updated",
  _id: 1,
  rev: number,
  time: 0,
  shown: number,
  position: `${number}`,
});

/** A feed at 3, whose past says what it is told to say, and what was asked of its source. */
function setUp(past: readonly (readonly number[])[] = [], source: Partial<Source<number>> = {}) {
  const log: string[] = [];
  const batches = [...past];
  let [time, endOfSleep] = [0, Promise.withResolvers<void>()];
  /** Time passes when the test says so. */
  async function sleep(ms: number): Promise<void> {
    for (const until = time + ms; time < until; ) await endOfSleep.promise;
  }
  const pass = (ms: number) => {
    time += ms;
    endOfSleep.resolve();
    endOfSleep = Promise.withResolvers();
  };
  const feed = createFeed<number>(
    {
      now: async () => "3",
      past: async (after) => ({
        async read() {
          const changes = (batches.shift() ?? []).map(change);
          return { changes, position: changes.at(-1)?.position ?? after };
        },
        close: () => void log.push("closed"),
      }),
      start() {
        log.push("started");
        return async () => {};
      },
      stop: () => void log.push("stopped"),
      ...source,
    },
    "3",
    sleep,
  );
  const add = (number: number) => {
    feed.tail.add(change(number), 1);
    feed.wake();
  };
  async function read(after: string | undefined) {
    const stop = new AbortController();
    const told: number[] = [];
    const changes = await feed.changes({ after, signal: stop.signal });
    const over = (async () => {
      for await (const batch of changes) told.push(...batch.map(({ shown }) => shown));
    })();
    return { told, changes, over, stop: () => stop.abort() };
  }
  return { feed, add, read, log, pass };
}

test("what the past has told already is not told again when the tail comes to it", async () => {
  const { add, read } = setUp([
    [1, 2],
    [3, 4, 5],
  ]);
  const reader = await read("0");
  let turns = 0;
  // However much there is of the past, others have their turns between.
  for (; reader.told.length < 5; turns++) await tick();
  expect(turns).toBeGreaterThanOrEqual(2);
  await tick();
  for (const number of [4, 5, 6]) add(number);
  await tick();
  await tick();
  expect(reader.told).toEqual([1, 2, 3, 4, 5, 6]);
  expect(reader.changes.position).toBe("6");
});

test("a source is started for the first who reads, stopped after the last, and started again", async () => {
  const { feed, read, log } = setUp();
  const readers = [await read(undefined), await read(undefined)];
  expect(log).toEqual(["started"]);
  readers[0]?.stop();
  expect([log, feed.isRead]).toEqual([["started"], true]);
  readers[1]?.stop();
  expect([log, feed.isRead]).toEqual([["started", "stopped"], false]);
  await read(undefined);
  expect(log).toEqual(["started", "stopped", "started"]);
});

test("a start that fails is told to who asked, and made again for the next", async () => {
  let isDown = true;
  const start = () => async () => {
    if (isDown) throw new Error("down");
  };
  const { read } = setUp([], { start });
  await expect(Promise.all([read(undefined), read(undefined)])).rejects.toThrow("down");
  isDown = false;
  await expect(read(undefined)).resolves.toBeDefined();
});

test("who has no time left for a start that others wait for leaves it to them", async () => {
  const { promise: started, resolve } = Promise.withResolvers<void>();
  const start = () => (options: ChangesOptions) => (options.deadline === 1 ? Promise.reject("late") : started);
  const { feed, read, log } = setUp([], { start });
  const impatient = feed.changes({ signal: new AbortController().signal, deadline: 1 });
  const patient = read(undefined);
  await expect(impatient).rejects.toBe("late");
  expect(log).toEqual([]);
  resolve();
  await expect(patient).resolves.toBeDefined();
});

test("who leaves in the past closes it, also without reading on", async () => {
  const { feed, log } = setUp([[1]]);
  const stop = new AbortController();
  await feed.changes({ after: "0", signal: stop.signal });
  stop.abort();
  expect(log).toEqual(["started", "closed", "stopped"]);
});

test("who falls behind before it reads goes on in the past, also when the time in which it had to begin is over", async () => {
  const deadlines: unknown[] = [];
  const past: Source<number>["past"] = async (_, { deadline }) => {
    deadlines.push(deadline);
    return { read: async () => ({ changes: [change(4), change(5)], position: "5" }), close() {} };
  };
  const { feed } = setUp([], { past });
  const changes = await feed.changes({ signal: new AbortController().signal, deadline: 1 });
  for (const number of [4, 5, 6]) feed.tail.add(change(number), 3 * 1024 * 1024);
  const [first] = (await changes[Symbol.asyncIterator]().next()).value ?? [];
  expect([first?.position, deadlines]).toEqual(["4", [undefined]]);
});

test("when the source fails all who read are told, once they have waited for it", async () => {
  const { feed, read } = setUp();
  const readers = [await read(undefined), await read(undefined)];
  await tick();
  feed.end(new Error("lost"));
  for (const { over } of readers) await expect(over).rejects.toThrow("lost");
  expect(feed.isRead).toBe(false);
});

test("many who read are woken when the writer has its answer, in turns, so that others have theirs between", async () => {
  const { add, read, pass } = setUp();
  const readers = await Promise.all(Array.from({ length: 3 * WOKEN_TOGETHER }, () => read(undefined)));
  await tick();
  const toldTo = () => readers.filter(({ told }) => told.length > 0).length;
  add(4);
  pass(PAUSE_MS - 1);
  for (let turns = 0; turns < 10; turns++) await tick();
  expect(toldTo()).toBe(0);
  pass(1);
  const turns: number[] = [];
  for (; toldTo() < readers.length; await tick()) turns.push(toldTo());
  expect(turns.at(-1)).toBe(2 * WOKEN_TOGETHER);
  expect(turns.slice(1).map((told, i) => told - (turns[i] ?? 0))).toSatisfy((steps: number[]) =>
    steps.every((step) => step <= WOKEN_TOGETHER),
  );
});

test("as many as have room in one tick are woken in the next", async () => {
  const { add, read } = setUp();
  const readers = await Promise.all(Array.from({ length: WOKEN_TOGETHER }, () => read(undefined)));
  await tick();
  add(4);
  await tick();
  await tick();
  for (const { told } of readers) expect(told).toEqual([4]);
});

test("what comes while some have not been woken yet is told to all, in order", async () => {
  const { add, read, pass } = setUp();
  const readers = await Promise.all(Array.from({ length: 2 * WOKEN_TOGETHER }, () => read(undefined)));
  await tick();
  add(4);
  pass(PAUSE_MS);
  while (readers[0]?.told.length === 0) await tick();
  expect(readers.at(-1)?.told).toEqual([]);
  add(5);
  for (let turns = 0; turns < 10; turns++) await tick();
  pass(PAUSE_MS);
  for (let turns = 0; turns < 10; turns++) await tick();
  for (const { told } of readers) expect(told).toEqual([4, 5]);
});
