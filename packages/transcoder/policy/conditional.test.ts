import { expect, test } from "vitest";
import { parseEntityTags } from "./conditional.ts";

test("spaces and tabs may stand around what names any record, and nothing else may", () => {
  for (const value of ["*", " *", "\t* "]) expect(parseEntityTags("If-Match", value)).toBe("*");
  for (const value of ["\xa0*", "*\v", "**"])
    expect(() => parseEntityTags("If-Match", value)).toThrow(/^If-Match: must be/);
});
