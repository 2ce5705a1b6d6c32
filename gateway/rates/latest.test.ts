import { expect, test } from "vitest";
import { createLatest } from "./rate-limits.ts";

test("the last half is always remembered, and never more than the whole", () => {
  const latest = createLatest<number>(10);
  for (let i = 0; i < 100; i++) {
    latest.set(`${i}`, i);
    const known = Array.from({ length: i + 1 }, (_, key) => latest.get(`${key}`)).filter(
      (value) => value !== undefined,
    );
    expect(known.length).toBeLessThanOrEqual(10);
    expect(known.slice(-5)).toEqual([4, 3, 2, 1, 0].map((back) => i - back).filter((value) => value >= 0));
  }
});

test("what is set again and again is remembered, by its last value, until it is deleted", () => {
  const latest = createLatest<number>(4);
  for (let i = 0; i < 20; i++) {
    latest.set("again", i);
    latest.set(`${i}`, i);
    expect(latest.get("again")).toBe(i);
  }
  latest.delete("again");
  expect(latest.get("again")).toBeUndefined();
});
