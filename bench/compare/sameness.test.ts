import { describe, expect, test } from "vitest";
import { type Answer, type Asked, difference, questions } from "./sameness.ts";

const asked = (answer: Partial<Answer>, method: "GET" | "POST" = "GET"): Asked[] => [
  { request: { method, path: "/pets/1" }, answer: { status: 200, body: {}, hasNext: false, ...answer } },
];
const between = (one: Asked[], other: Asked[]) =>
  difference({ name: "one", asked: one }, { name: "other", asked: other });

describe("is the same", () => {
  test("members in another order", () =>
    expect(between(asked({ body: { id: 1, name: "Rex" } }), asked({ body: { name: "Rex", id: 1 } }))).toBeUndefined());
  test("the number of a new order", () =>
    expect(
      between(asked({ status: 201, body: { id: 1, petId: 7 } }), asked({ status: 201, body: { id: 9, petId: 7 } })),
    ).toBeUndefined());
  test("the words of an error", () => {
    const error = (message: string) => asked({ status: 404, body: { code: "PET_NOT_FOUND", message, status: 404 } });
    expect(between(error("No."), error("Not there."))).toBeUndefined();
  });
});

describe("is another answer", () => {
  const rex = asked({ body: { id: 1, name: "Rex" } });
  test.each<[string, Asked[]]>([
    ["another value", asked({ body: { id: 1, name: "Max" } })],
    ["a member more", asked({ body: { id: 1, name: "Rex", etag: "1" } })],
    ["a number as text", asked({ body: { id: "1", name: "Rex" } })],
    ["another status", asked({ status: 203, body: { id: 1, name: "Rex" } })],
    ["a page without the next one", asked({ body: { id: 1, name: "Rex" }, hasNext: true })],
    ["an answer that is missing", []],
  ])("%s", (_, other) => {
    expect(between(rex, other)).toMatch("GET /pets/1 is answered differently.");
    expect(between(other, rex)).toMatch("GET /pets/1 is answered differently.");
  });
  test("the id of a new order that is no number", () => {
    const placed = (id: unknown) => asked({ status: 201, body: { id, petId: 7 } }, "POST");
    expect(between(placed(1), placed("65a1"))).toMatch("differently");
  });
  test("an error without a code", () => {
    expect(
      between(asked({ status: 404, body: { code: "X", message: "", status: 404 } }), asked({ status: 404, body: {} })),
    ).toBeDefined();
  });
});

test("questions are of every workload, and of what is not there", () => {
  const paths = questions(100, 1).map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(["/pets/101", "/pets?limit=20", "/store/orders"]));
  expect(paths.some((path) => path.includes("categoryId="))).toBe(true);
});
