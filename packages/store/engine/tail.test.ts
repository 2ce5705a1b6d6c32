import { expect, test } from "vitest";
import type { Change } from "../port.ts";
import { createTail } from "./tail.ts";

const position = (number: number) => `${number}`.padStart(8, "0");
const change = (number: number): Change<number> => ({
  type: "updated",
  _id: 1,
  rev: number,
  time: 0,
  shown: number,
  position: position(number),
});

function filled(count: number, bytes: number) {
  const tail = createTail<number>(position(0));
  for (let number = 1; number <= count; number++) tail.add(change(number), bytes);
  return tail;
}

test("what is kept is bounded by its bytes, the newest stays, and what was before is known to be gone", () => {
  for (const count of [5_000, 20_000, 20_001]) {
    const tail = filled(count, 1024);
    expect(tail.end - tail.first).toBe(4096);
    expect([tail.first, tail.end]).toEqual([count - 4096, count]);
    expect(tail.base).toBe(position(count - 4096));
    expect(tail.from(tail.first)[0]).toEqual(change(count - 4095));
  }
  expect(filled(3, 1e9).from(2)).toEqual([change(3)]);
});

test("who is at the same place gets the same array, of a bounded length", () => {
  const tail = filled(1000, 10);
  const batch = tail.from(0);
  expect(batch).toHaveLength(256);
  expect(tail.from(0)).toBe(batch);
  expect(tail.from(256)[0]).toEqual(change(257));
  expect(tail.from(1000)).toEqual([]);
  tail.add(change(1001), 10);
  expect(tail.from(1000)).toEqual([change(1001)]);
});

test("a position leads to what follows it", () => {
  const tail = filled(20_000, 1024);
  for (const number of [15_904, 15_905, 19_999, 20_000]) expect(tail.numberAfter(position(number))).toBe(number);
  expect(tail.numberAfter(position(30_000))).toBe(20_000);
});

test("cleared it begins at its position, and a position that moves on moves the beginning of an empty one", () => {
  const tail = filled(10, 10);
  tail.moveTo(position(20));
  expect([tail.base, tail.position]).toEqual([position(0), position(20)]);
  tail.clear();
  expect([tail.base, tail.first, tail.end]).toEqual([position(20), 10, 10]);
  tail.moveTo(position(30));
  expect(tail.base).toBe(position(30));
  tail.add(change(31), 10);
  expect(tail.from(10)).toEqual([change(31)]);
});
