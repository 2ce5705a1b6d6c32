import { expect, test } from "vitest";
import { RETENTION } from "./retention.ts";

test("tombstones outlive the keys that name them, and whatever is under way", () => {
  const { keys, tombstones } = RETENTION;
  // A key is kept a period longer than it is answered from, and each removed a period or two late.
  expect(tombstones.ageMs).toBeGreaterThan(keys.ageMs + 4 * keys.periodMs);
});
