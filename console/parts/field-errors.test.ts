import { PetstoreError } from "@petstore/client";
import { expect, test } from "vitest";
import { dateTime, fieldErrors, InvalidInput, integer, integer32, localTime } from "./field-errors.ts";

const name = { name: "name", label: "Name", missing: "Give the pet a name." };
const category = { name: "categoryId", label: "Category" };
const failed = (code: string, more: object = {}) => new PetstoreError(code, "what to do", more);

test("violations stand at the fields that they are about", () => {
  const violations = [
    { field: "categoryId", message: "must be greater than 0" },
    { field: "requestId", message: "is none of the form's" },
  ];
  const found = fieldErrors(failed("VALIDATION_FAILED", { violations }), [name, category], { categoryId: "0" });
  expect(found).toEqual({ categoryId: "Category must be greater than 0." });
});

test("of an empty or blank field is said what is missing, by whatever rule", () => {
  const violations = [
    { field: "name", message: "must not be blank or contain U+0000" },
    { field: "categoryId", message: "value is required" },
  ];
  const found = (text: string) =>
    fieldErrors(failed("VALIDATION_FAILED", { violations }), [name, category], { name: text });
  expect(found(" ")).toEqual({ name: "Give the pet a name.", categoryId: "value is required" });
  expect(found("\0").name).toBe("Name must not be blank or contain U+0000.");
});

test("so do the codes that are about a field, and no others", () => {
  const fieldOf = { CATEGORY_NOT_FOUND: "categoryId" } as const;
  const found = fieldErrors(failed("CATEGORY_NOT_FOUND"), [category], { categoryId: "7" }, fieldOf);
  expect(found).toEqual({ categoryId: "what to do" });
  expect(fieldErrors(failed("OVERLOADED"), [category], {}, fieldOf)).toEqual({});
});

test("integers are exact, and nothing else is one", () => {
  expect(integer("id", " 9007199254740991 ")).toBe(9007199254740991);
  expect(integer32("quantity", "-2147483648", 1)).toBe(-2147483648);
  for (const text of ["", "1.5", "1e3", "0x1", "one", "9007199254740992"])
    expect(() => integer("id", text), text).toThrow(InvalidInput);
  expect(() => integer32("quantity", "2147483648", 1)).toThrow("must be from 1 to 2147483647");
});

test("a time is shown in a field as it is read from it", () => {
  expect(dateTime("shipDate", localTime("2027-07-31T23:59:00Z")).toISOString()).toBe("2027-07-31T23:59:00.000Z");
  expect(localTime("2027-01-31T10:59:00Z")).toMatch(/^2027-(01-31|02-01)T..:..$/); // whole minutes, as people write them
  expect(dateTime("shipDate", localTime("2027-01-31T10:59:59.5Z")).toISOString()).toBe("2027-01-31T10:59:59.500Z");
});

test("a date is one that a timestamp can be", () => {
  expect(dateTime("shipDate", "2027-12-31T23:59Z").toISOString()).toBe("2027-12-31T23:59:00.000Z");
  for (const text of ["20266-01-01T00:00Z", "+020266-01-01T00:00Z", "0000-06-01T00:00Z", "soon"])
    expect(() => dateTime("shipDate", text), text).toThrow(InvalidInput);
});
