import { serialize } from "bson";
import { expect, test } from "vitest";
import { splitAtBoundaries } from "./list-queries.ts";

const [boundary, document] = [serialize({}), serialize({ _id: 1 })];
const two = [{ limit: 2 }, { limit: 1 }];

test("lists are told apart by what stands between them", () => {
  expect(splitAtBoundaries([document, document, boundary, document], two)).toEqual([[document, document], [document]]);
  expect(splitAtBoundaries([boundary], two)).toEqual([[], []]);
});

test.each([
  ["a boundary is missing", [document, document]],
  ["there is one more", [document, boundary, boundary]],
  ["a list has more than it may have", [document, boundary, document, document]],
])("they are no lists one after the other: %s", (_, found) => {
  expect(splitAtBoundaries(found, two)).toBeUndefined();
});
