import { expect, test } from "vitest";
import { differences } from "./conflict.tsx";
import { shownTime } from "./field-errors.ts";

test("their fields are told as people read them", () => {
  const fields = [
    { name: "name", label: "Name" },
    { name: "description", label: "Description" },
    { name: "shipDate", label: "Ship date", kind: "moment" },
    { name: "status", label: "Listed as", options: [["", "as it is"]] },
  ] as const;
  const theirs = { name: "Rex", description: "", shipDate: "2040-06-05T12:00", status: "" };
  const mine = { name: "Max", description: "mine", shipDate: "", status: "sold" };
  const time = shownTime("2040-06-05T12:00");
  expect(time).not.toContain("T");
  expect(differences(fields, mine, theirs)).toBe(`Name “Rex”, Description (empty), Ship date “${time}”`);
  expect(differences(fields, { ...theirs, status: "sold" }, theirs)).toBe("");
});
