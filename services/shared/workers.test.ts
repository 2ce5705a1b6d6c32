import { setTimeout as delay } from "node:timers/promises";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";
import { every } from "./workers.ts";

/** A worker whose pauses end when the test says so. */
function worker(task: (signal: AbortSignal) => Promise<unknown>, random = () => 0.5) {
  const pauses: { ms: number; end: () => void }[] = [];
  const logged: string[] = [];
  const log = pino({ level: "info" }, { write: (line) => void logged.push(JSON.parse(line).msg) });
  const sleep = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      pauses.push({ ms, end: resolve });
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
  const it = every(1000, "sweeper", task, { sleep, random, log });
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

describe("waking", () => {
  test("ends the pause", async () => {
    let runs = 0;
    const { it } = worker(async () => runs++);
    await turn();
    it.wake();
    await turn();
    expect(runs).toBe(2);
  });

  test("during a run makes for one more, never for two at a time", async () => {
    let runs = 0;
    let running = 0;
    let most = 0;
    const { it } = worker(async () => {
      runs++;
      most = Math.max(most, ++running);
      await delay(20);
      running--;
    });
    await turn();
    it.wake();
    it.wake();
    await delay(80);
    expect([runs, most]).toEqual([2, 1]);
  });
});

test("a failure is logged when it is new, and recovery too; the worker goes on", async () => {
  const outcomes = [true, false, false, true, false];
  const { pauses, logged } = worker(async () => {
    if (!outcomes.shift()) throw new Error("peer is down");
  });
  for (let i = 0; i < 4; i++) {
    await turn();
    pauses.at(-1)?.end();
  }
  await turn();
  expect(logged).toEqual([
    "sweeper failed and will be tried again",
    "sweeper works again",
    "sweeper failed and will be tried again",
  ]);
});

test("ends after the run that is under way, whose signal is aborted", async () => {
  let aborted = false;
  let finished = false;
  const { it, pauses } = worker(async (signal) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    aborted = signal.aborted;
    await delay(20);
    finished = true;
  });
  await turn();
  await it[Symbol.asyncDispose]();
  expect([aborted, finished, pauses.length]).toEqual([true, true, 0]);
});
