import { setTimeout as delay } from "node:timers/promises";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { every } from "./workers.ts";

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
