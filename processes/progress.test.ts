import { expect, test } from "vitest";
import { showProgress } from "./progress.ts";

function shown(isTTY: boolean, times: readonly number[]): string[] {
  const written: string[] = [];
  let now = 0;
  const stream = { isTTY, columns: 80, write: (text: string) => written.push(text) };
  using progress = showProgress(stream as never, () => now);
  for (const time of times) {
    now = time;
    progress.note(`${time} pets`);
  }
  return written;
}

test("what is soon over is not shown", () => expect(shown(false, [0, 500, 1_999])).toEqual([]));

test("a line now and then, from the second second on", () =>
  expect(shown(false, [1_000, 2_000, 2_100, 6_999, 7_000])).toEqual(["2000 pets\n", "7000 pets\n"]));

test("on a terminal one line that changes, and goes", () => {
  const clear = "\r\x1b[K";
  expect(shown(true, [2_000, 2_100, 2_200])).toEqual([`${clear}2000 pets`, `${clear}2200 pets`, clear]);
});
