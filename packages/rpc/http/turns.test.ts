import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTurns } from "./turns.ts";

function started(atOnce: number) {
  const inTurn = createTurns(atOnce);
  const begun: number[] = [];
  const gone = new Set<number>();
  const come = (...numbers: number[]) => {
    for (const i of numbers) inTurn(() => !gone.has(i) && begun.push(i) > 0);
  };
  return { begun, gone, come };
}

test("what comes alone begins at once", async () => {
  const { begun, come } = started(2);
  for (const i of [1, 2, 3]) {
    come(i);
    expect(begun.at(-1)).toBe(i);
    await nextTurn();
    await nextTurn();
  }
});

test("what comes together begins in order, and a few at a time", async () => {
  const { begun, come } = started(2);
  come(1, 2, 3, 4, 5, 6);
  const seen = [begun.length];
  for (let turn = 0; turn < 5; turn++) {
    await nextTurn();
    seen.push(begun.length);
  }
  expect(begun).toEqual([1, 2, 3, 4, 5, 6]);
  expect(seen).toEqual([1, 1, 3, 5, 6, 6]);
});

test("what comes meanwhile waits behind the others", async () => {
  const { begun, come } = started(2);
  come(1, 2, 3, 4);
  await nextTurn();
  come(5);
  for (let turn = 0; turn < 4; turn++) await nextTurn();
  expect(begun).toEqual([1, 2, 3, 4, 5]);
});

test("what has gone by its turn never begins, and takes no turn", async () => {
  const { begun, gone, come } = started(2);
  come(1, 2, 3, 4, 5);
  for (const i of [2, 3, 4]) gone.add(i);
  await nextTurn();
  await nextTurn();
  expect(begun).toEqual([1, 5]);
});
