import { setTimeout as delay } from "node:timers/promises";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { createMovableTime, every, realTime } from "./clock.ts";

const DAY_MS = 86_400_000;

test("it begins where it is told to, and moves on", () => {
  const time = createMovableTime(Date.UTC(2030, 0, 1));
  expect(new Date(time.clock()).toISOString()).toContain("2030-01-01T00:00:0");
  time.advance(DAY_MS);
  expect(new Date(time.wallClock()).toISOString()).toContain("2030-01-02T00:00:0");
});

test("without a beginning it is the real time", () => {
  expect(Math.abs(createMovableTime().clock() - realTime.clock())).toBeLessThan(10_000);
});

test("what sleeps wakes up when its time has come, and not before", async () => {
  const time = createMovableTime();
  const woken: string[] = [];
  const sleeper = async (name: string, ms: number) => {
    await time.sleep(ms);
    woken.push(name);
  };
  const [hour, day] = [sleeper("hour", DAY_MS / 24), sleeper("day", DAY_MS)];
  time.advance(DAY_MS / 2);
  await hour;
  expect(woken).toEqual(["hour"]);
  time.advance(DAY_MS / 2);
  await day;
  expect(woken).toEqual(["hour", "day"]);
  await time.sleep(0);
});

test("a sleep ends with its signal, before and after the clock was moved", async () => {
  const time = createMovableTime();
  const stop = new AbortController();
  const sleeping = time.sleep(DAY_MS, stop.signal);
  time.advance(1000);
  stop.abort();
  await expect(sleeping).rejects.toThrow("aborted");
  await expect(time.sleep(1, stop.signal)).rejects.toThrow("aborted");
});

/** A worker whose pauses end when the test says so. */
function worker(task: (stop: AbortSignal) => Promise<unknown>, random = () => 0.5) {
  const pauses: { ms: number; end: () => void }[] = [];
  const logged: string[] = [];
  const log = pino({ level: "info" }, { write: (line) => void logged.push(JSON.parse(line).msg) });
  const sleep = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      pauses.push({ ms, end: resolve });
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
  const it = every(1000, "recovery worker", task, { sleep, random, log });
  onTestFinished(() => it[Symbol.asyncDispose]());
  return { it, pauses, logged };
}
const turn = () => delay(1);

test("runs at once, then after each pause", async () => {
  let runs = 0;
  const { pauses } = worker(async () => runs++);
  await turn();
  expect(runs).toBe(1);
  pauses[0]?.end();
  await turn();
  expect(runs).toBe(2);
});

test("pauses a quarter more or less", async () => {
  const pausesWith = async (random: () => number) => {
    const { pauses } = worker(async () => {}, random);
    await turn();
    return pauses.map(({ ms }) => ms);
  };
  expect([await pausesWith(() => 0), await pausesWith(() => 0.5)]).toEqual([[750], [1000]]);
});

test("one run at a time: the pause begins when it is over", async () => {
  const { promise: run, resolve: end } = Promise.withResolvers<void>();
  const { pauses } = worker(() => run);
  await turn();
  expect(pauses).toEqual([]);
  end();
  await turn();
  expect(pauses).toHaveLength(1);
});

test("one failure is nothing, a second in a row is told once, and recovery too; the worker goes on", async () => {
  const outcomes = [false, true, false, false, false, true, false];
  const { pauses, logged } = worker(async () => {
    if (!outcomes.shift()) throw new Error("peer is down");
  });
  for (let i = 0; i < 6; i++) {
    await turn();
    pauses.at(-1)?.end();
  }
  await turn();
  expect(logged).toEqual(["recovery worker failed again and will be tried further", "recovery worker works again"]);
});

test("failures in a row are counted, and told again more and more rarely", async () => {
  const { pauses, logged } = worker(() => Promise.reject(new Error("peer is down")));
  for (let i = 0; i < 40; i++) {
    await turn();
    pauses.at(-1)?.end();
  }
  // The 2nd, 4th, 8th, 16th and 32nd.
  expect(logged).toHaveLength(5);
});

test("the run that is under way is told to stop", async () => {
  let told: AbortSignal | undefined;
  const { it } = worker(async (stop) => {
    told = stop;
    await new Promise((resolve) => stop.addEventListener("abort", resolve));
  });
  expect(told?.aborted).toBe(false);
  await it[Symbol.asyncDispose]();
  expect(told?.aborted).toBe(true);
});

test("ends after the run that is under way", async () => {
  const held = Promise.withResolvers<void>();
  let finished = false;
  const { it, pauses } = worker(async () => {
    await held.promise;
    finished = true;
  });
  const ended = it[Symbol.asyncDispose]();
  await turn();
  expect(finished).toBe(false);
  held.resolve();
  await ended;
  expect([finished, pauses.length]).toEqual([true, 0]);
});
