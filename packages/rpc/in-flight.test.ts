import { expect, test } from "vitest";
import { InFlight } from "./in-flight.ts";

test("no two have the same number at a time, and numbers are used again", () => {
  const calls = new InFlight<string>();
  expect(["a", "b", "c"].map((one) => calls.add(one))).toEqual([1, 2, 3]);
  expect([calls.take(2), calls.take(2), calls.take(0), calls.take(4)]).toEqual(["b", undefined, undefined, undefined]);
  expect([calls.add("d"), calls.add("e")]).toEqual([2, 4]);
  expect([calls.all(), calls.size]).toEqual([["a", "d", "c", "e"], 4]);
});
