import { expect, test } from "vitest";
import { countMeant, InvalidInput, stepped } from "./field-errors.ts";

test("one more or less keeps a change a change, and changes no text that is none", () => {
  expect(["-2", "+10", " + 1 ", "+0", "5", "0", ""].map((text) => stepped(text, -1))).toEqual(
    ["-3", "+9", "+0", "-1", "4", "0", "0"], // of a stock there is none below 0
  );
  expect(["-2", "-1", "+10", "+", "5", ""].map((text) => stepped(text, 1))).toEqual([
    "-1",
    "+0",
    "+11",
    "+1",
    "6",
    "1",
  ]);
  for (const text of ["1.5", "ten", "--2"]) expect(stepped(text, 1)).toBe(text);
});

test("what is typed is the count, or is added to the one that there is", () => {
  const meant = (text: string) => countMeant("quantity", text, 30);
  expect(["5", " 5 ", "0", "+10", "-2", " + 1 ", "-40", ""].map(meant)).toEqual([5, 5, 0, 40, 28, 31, -10, undefined]);
  for (const text of ["1.5", "ten", "+", "--2", "+3000000000"]) expect(() => meant(text)).toThrow(InvalidInput);
});
