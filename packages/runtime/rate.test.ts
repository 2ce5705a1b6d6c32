import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConfigError, optional, readEnvironment } from "./environment.ts";
import { judge, type Rate, rate, type Used } from "./rate.ts";

const rates = fc.record({
  requests: fc.integer({ min: 1, max: 1000 }),
  windowMs: fc.constantFrom(1000, 60_000, 3_600_000),
  burst: fc.integer({ min: 1, max: 50 }),
});

/** Sends a request after each pause; what was allowed, and when. */
function send(one: Rate, pauses: readonly number[]) {
  let used: Used | undefined;
  let now = 1_800_000_000_000;
  return pauses.map((pause) => {
    now += pause;
    const verdict = judge(one, used, now);
    used = verdict.used;
    return { now, ...verdict };
  });
}

describe("whatever is sent", () => {
  const pauses = fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 1, maxLength: 100 });

  test("no more is allowed in any time than the burst and what the rate adds", () => {
    fc.assert(
      fc.property(rates, pauses, (one, all) => {
        const allowed = send(one, all).flatMap(({ allowed, now }) => (allowed ? [now] : []));
        for (const [i, from] of allowed.entries())
          for (const [j, to] of allowed.slice(i).entries())
            expect(j + 1).toBeLessThanOrEqual(one.burst + ((to - from) * one.requests) / one.windowMs);
      }),
    );
  });

  test("as many as are said to remain are allowed at once, and no more", () => {
    fc.assert(
      fc.property(rates, pauses, (one, all) => {
        const last = send(one, all).at(-1);
        if (!last) throw new Error("nothing was sent");
        let { used } = last;
        for (let i = 0; i < last.remaining; i++) {
          const next = judge(one, used, last.now);
          expect(next.allowed).toBe(true);
          used = next.used;
        }
        expect(judge(one, used, last.now).allowed).toBe(false);
      }),
    );
  });

  test("a refused one is allowed when it was told to be, and not a millisecond before", () => {
    fc.assert(
      fc.property(rates, pauses, (one, all) => {
        for (const { allowed, used, now, retryMs } of send(one, all)) {
          if (allowed) continue;
          const then = now + Math.ceil(retryMs);
          expect([then - 1, then].map((at) => judge(one, used, at).allowed)).toEqual([false, true]);
        }
      }),
    );
  });

  test("the whole burst is back when it was told to be", () => {
    fc.assert(
      fc.property(rates, pauses, (one, all) => {
        for (const { used, now, resetMs } of send(one, all))
          expect(judge(one, used, now + Math.ceil(resetMs)).remaining).toBe(one.burst - 1);
      }),
    );
  });
});

test("where the rate has been lowered, a caller waits for no more than the new one says", () => {
  const [before, after] = [600, 60].map((requests) => ({ requests, windowMs: 60_000, burst: requests })) as [
    Rate,
    Rate,
  ];
  const used = send(before, Array<number>(500).fill(0)).at(-1)?.used;
  const refused = judge(after, used, used?.at ?? 0);
  expect(refused).toMatchObject({ allowed: false, remaining: 0, resetMs: 60_000, retryMs: 1000 });
});

describe("as a setting", () => {
  const read = (text: string) => readEnvironment({ RATE: text }, { RATE: optional(rate) }).RATE;

  test.each([
    ["600/min", { requests: 600, windowMs: 60_000, burst: 600 }],
    ["600/min;burst=100", { requests: 600, windowMs: 60_000, burst: 100 }],
    ["1/h;burst=5", { requests: 1, windowMs: 3_600_000, burst: 5 }],
    ["50/s", { requests: 50, windowMs: 1000, burst: 50 }],
  ])("%s", (text, expected) => expect(read(text)).toEqual(expected));

  test.each([
    "600",
    "0/min",
    "600/day",
    "600/min;burst=0",
    "600/min;burst=",
    "9999999/s",
    "-1/s",
    "1.5/s",
    "600/min;b=1",
  ])("%s is none", (text) => {
    expect(() => read(text)).toThrow(ConfigError);
    expect(() => read(text)).toThrow(/^RATE=.* must be a rate such as 600\/min/);
  });
});
