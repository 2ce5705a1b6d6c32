/** What the document says of a date and time, held against what is taken. */
import { expect, test } from "vitest";
import { parseTimestamp } from "../contract/well-known.ts";
import { nullable, timestampSchema } from "./values.ts";

const pattern = new RegExp(timestampSchema.pattern as string, "u");
const two = Array.from({ length: 100 }, (_, number) => `${number}`.padStart(2, "0"));
const isTaken = (text: string) => parseTimestamp(text) !== undefined;
/** The texts of which the pattern says otherwise. */
const wrong = (texts: readonly string[]) => texts.filter((text) => pattern.test(text) !== isTaken(text));

test("every month and day of a leap year, and no other", () => {
  expect(wrong(two.flatMap((month) => two.map((day) => `2028-${month}-${day}T12:00:00Z`)))).toEqual([]);
});

test("in other years the format alone refuses the day that they lack", () => {
  const days = two.flatMap((month) => two.map((day) => `2027-${month}-${day}T12:00:00Z`));
  expect(wrong(days)).toEqual(["2027-02-29T12:00:00Z"]);
});

test("every hour, minute, second and offset, and no other", () => {
  const times = two.flatMap((n) => [
    `${n}:00:00Z`,
    `00:${n}:00Z`,
    `00:00:${n}Z`,
    `12:00:00+${n}:00`,
    `12:00:00-00:${n}`,
  ]);
  expect(wrong(times.map((time) => `2028-06-15T${time}`))).toEqual([]);
});

test("the years 0001 to 9999", () => {
  const years = ["0000", "0001", "0010", "0100", "1000", "9999", "10000", "999", "-0001", "+2028"];
  expect(wrong(years.map((year) => `${year}-06-15T12:00:00Z`))).toEqual([]);
});

test("null beside null is null", () => {
  expect(nullable({ type: "null" })).toEqual({ type: "null" });
  expect(nullable({ type: "string" })).toEqual({ type: ["string", "null"] });
});
