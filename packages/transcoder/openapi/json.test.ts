import { expect, test } from "vitest";
import { jsonText } from "./json.ts";

test("integers have all their digits, and what is undefined is left out", () => {
  expect(jsonText({ a: 2n ** 63n, b: [1, null, undefined as never].slice(0, 2), c: undefined, d: "é" })).toBe(
    '{"a":9223372036854775808,"b":[1,null],"d":"é"}',
  );
});

test.each(["\x7f", "\x80", "\x85", "\x9f", "\u2028", "\u2029", "\ufeff", "\ufffe", "\uffff"])(
  "%j is escaped, for readers of YAML would refuse it or take it for a line break",
  (sign) => {
    const text = jsonText({ [`a${sign}`]: `b${sign}` });
    expect(text).not.toContain(sign);
    expect(JSON.parse(text)).toEqual({ [`a${sign}`]: `b${sign}` });
  },
);
