import { expect, test } from "vitest";
import { judgeConditions, parseEntityTags } from "./conditional.ts";

test("spaces and tabs may stand around what names any record, and nothing else may", () => {
  for (const value of ["*", " *", "\t* "]) expect(parseEntityTags("If-Match", value)).toBe("*");
  for (const value of ["\xa0*", "*\v", "**"])
    expect(() => parseEntityTags("If-Match", value)).toThrow(/^If-Match: must be/);
});

test.each([
  ['"2"', '"3"', 'The record is at revision "3" now, which If-Match does not name.'],
  ['"2", W/"3"', '"3"', /does not name\. A weak tag \(W\/\) never matches here\. .*: send it without the W\/\.$/],
  ['W/"3"', 'W/"3"', /It matches no weak tag, as this one is\.$/],
])("If-Match: %s of a record with %s is told what is wrong", (condition, etag, message) => {
  const conditions = { ifMatch: parseEntityTags("If-Match", condition), ifNoneMatch: undefined };
  const answer = { status: 200, headers: { etag }, type: "application/json", body: undefined };
  expect(() => judgeConditions(conditions, answer)).toThrow(message);
});
