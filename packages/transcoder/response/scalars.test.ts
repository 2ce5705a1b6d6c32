/** How scalars.ts writes floating-point numbers: as short as the type allows, and read again as what they were. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { doubleText, floatText } from "./scalars.ts";

test.each([
  [0.1, "0.1"],
  [123.456, "123.456"],
  [1 / 3, "0.33333334"],
  [16777217.5, "16777218"],
  [1234567936, "1234567936"],
  [3.4028234663852886e38, "3.4028235e+38"],
  [1e30, "1e+30"],
  [1.4e-45, "1.4013e-45"],
  [-0, "-0"],
  [Number.NaN, '"NaN"'],
  [Number.NEGATIVE_INFINITY, '"-Infinity"'],
])("a float %s is %s", (value, text) => {
  expect(floatText(Math.fround(value))).toBe(text);
});

test("a float is read as what it was", () => {
  fc.assert(
    fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (value) => {
      expect(Math.fround(Number(floatText(value)))).toBe(value);
    }),
  );
});

test("a double has all its digits", () => {
  expect([0.1, Math.fround(0.1), -0, Number.POSITIVE_INFINITY].map(doubleText)).toEqual([
    "0.1",
    "0.10000000149011612",
    "-0",
    '"Infinity"',
  ]);
});
