import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTurns } from "./turns.ts";

function started(atOnce: number) {
  const inTurn = createTurns(atOnce);
  const begun: number[] = [];
  const come = (...numbers: number[]) => new Map(numbers.map((i) => [i, inTurn(() => void begun.push(i))]));
  return { begun, come };
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

test("what is given up before its turn never begins, and takes no turn", async () => {
  const { begun, come } = started(2);
  const giveUp = come(1, 2, 3, 4, 5, 6);
  for (const i of [1, 2, 3]) giveUp.get(i)?.();
  await nextTurn();
  giveUp.get(4)?.();
  await nextTurn();
  expect(begun).toEqual([1, 5, 6]);
});
