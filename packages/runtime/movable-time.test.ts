import { expect, test } from "vitest";
import { realTime } from "./clock.ts";
import { createMovableTime } from "./movable-time.ts";

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
