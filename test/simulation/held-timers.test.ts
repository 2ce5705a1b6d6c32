import { setImmediate as tick } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, expect, test } from "vitest";
import { holdTimers } from "./held-timers.ts";

const { setTimeout: realSetTimeout } = globalThis;
afterEach(() => {
  globalThis.setTimeout = realSetTimeout;
});

test("no timer fires, and none keeps what it was set for", async () => {
  let hasFired = false;
  const set = () => {
    const large = { hasFired };
    setTimeout(() => {
      hasFired = !large.hasFired;
    }, 0).unref();
    return new WeakRef(large);
  };
  holdTimers();
  const kept = set();
  await new Promise<void>((passed) => void realSetTimeout(passed, 5));
  await tick();
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  expect(hasFired).toBe(false);
  expect(kept.deref()).toBeUndefined();
});
