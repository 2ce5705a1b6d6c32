import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { createSharedTimer } from "./shared-timer.ts";

/** A clock that is moved by hand, and a timer of which every timer is known. */
function beating() {
  let now = 0;
  const timers = new Set<{ readonly at: number; readonly ring: () => void }>();
  const sleep = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((ring, reject) => {
      const timer = { at: now + ms, ring };
      timers.add(timer);
      signal?.addEventListener("abort", () => timers.delete(timer) && reject(signal.reason));
    });
  const timer = createSharedTimer({ clock: () => now, sleep });
  const woken: string[] = [];
  return {
    timer,
    woken,
    at: () => [...timers].map(({ at }) => at),
    wait: (name: string, dueAt: number) => {
      const wait = { dueAt, wake: () => void woken.push(name) };
      timer.wait(wait);
      return wait;
    },
    async moveTo(time: number) {
      now = time;
      for (const timer of timers) if (timer.at <= now && timers.delete(timer)) timer.ring();
      await turn();
    },
  };
}

test("all have one timer, and each is woken once, when it is due", async () => {
  const { wait, moveTo, woken, at } = beating();
  for (const [name, dueAt] of [
    ["b", 20],
    ["a", 10],
    ["c", 20],
  ] as const)
    wait(name, dueAt);
  expect(at()).toEqual([10]);
  await moveTo(10);
  expect([woken, at()]).toEqual([["a"], [20]]);
  await moveTo(20);
  expect([woken, at()]).toEqual([["a", "b", "c"], []]);
});

test("who is put off meanwhile is woken later", async () => {
  const { wait, moveTo, woken } = beating();
  const one = wait("a", 10);
  one.dueAt = 15;
  await moveTo(10);
  expect(woken).toEqual([]);
  await moveTo(15);
  expect(woken).toEqual(["a"]);
});

test("when all have left there is no timer", () => {
  const { timer, wait, at } = beating();
  const [a, b] = [wait("a", 10), wait("b", 20)];
  timer.leave(a);
  expect(at()).toEqual([10]);
  timer.leave(b);
  expect(at()).toEqual([]);
});
