import { expect, test } from "vitest";
import type { Operation } from "../workload/operations.ts";
import { createExistence } from "./existence.ts";
import type { Attempt } from "./violations.ts";

/** What is reported when lists of categories show these ids one after the other. */
function reportedOf(lists: readonly (readonly number[])[]): string[] {
  const reported: string[] = [];
  const attempts: Attempt[] = [];
  const exists = createExistence((violation) => void reported.push(violation), attempts);
  for (const [i, found] of lists.entries()) {
    const operation: Operation = { do: "list category", mark: i };
    const attempt: Attempt = {
      operation,
      sent: 2 * i,
      about: [],
      over: { at: 2 * i + 1, outcome: { is: "done", found } },
    };
    attempts.push(attempt);
    exists(attempt);
  }
  return reported;
}

const newest = (last: number, count: number) => Array.from({ length: count }, (_, i) => last - i);

test("a record that a list has left out is not shown again", () => {
  expect(
    reportedOf([
      [3, 2, 1],
      [3, 1],
      [3, 2, 1],
    ]),
  ).toEqual(["category 2 was said to be gone, and list category, sent after that, showed it"]);
  expect(reportedOf([[1], [], [1]])).toHaveLength(1);
  expect(
    reportedOf([
      newest(100, 100),
      newest(101, 102)
        .filter((id) => id !== 50)
        .slice(0, 100),
      newest(101, 100),
    ]),
  ).toHaveLength(1);
});

test("a full page says nothing of older records", () => {
  expect(reportedOf([newest(100, 100), newest(101, 100), newest(100, 100)])).toEqual([]);
});
