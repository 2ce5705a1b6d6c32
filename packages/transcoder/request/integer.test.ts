import fc from "fast-check";
import { expect, test } from "vitest";
import { toInteger } from "./scalars.ts";

test.each<[string, bigint | undefined]>([
  ["0", 0n],
  ["-0", 0n],
  ["-0.0e5", 0n],
  ["0e999999999999", 0n],
  ["1.0", 1n],
  ["1e3", 1000n],
  ["10e-1", 1n],
  ["1.5e1", 15n],
  ["-1.50e+1", -15n],
  ["900719925474099.3e1", 9007199254740993n],
  ["9223372036854775807", 9223372036854775807n],
  ["9223372036854775807.000", 9223372036854775807n],
  ["1.5", undefined],
  ["1e-400", undefined],
  ["1.00000000000000000000000001", undefined],
  ["9007199254740992.5", undefined],
  ["1e400", 10n ** 40n],
  ["-1e999999999999999999999", -(10n ** 40n)],
  ["1e-999999999999999999999", undefined],
])("%s", (text, value) => {
  expect(toInteger(text)).toBe(value);
});

test("an integer is the same however its point and exponent are shifted", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }), fc.nat(30), (value, shift) => {
      const [sign, digits] = [value < 0n ? "-" : "", String(value).replace("-", "")];
      expect(toInteger(`${value}`)).toBe(value);
      expect(toInteger(`${value}${"0".repeat(10)}e-10`)).toBe(value);
      const padded = digits.padStart(shift + 1, "0");
      const cut = padded.length - shift;
      const whole = padded.slice(0, cut).replace(/^0+(?=\d)/, "");
      expect(toInteger(`${sign}${whole}.${padded.slice(cut)}0e${shift}`)).toBe(value);
    }),
  );
});

test("a fraction is never taken for an integer", () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }),
      fc.nat(300),
      fc.integer({ min: 1, max: 9 }),
      (whole, zeros, digit) => {
        expect(toInteger(`${whole}.${"0".repeat(zeros)}${digit}`)).toBeUndefined();
      },
    ),
  );
});
