import { describe, expect, test } from "vitest";
import { workloads } from "../load/workloads.ts";
import { type Answer, type Asked, difference, questions } from "./sameness.ts";

const asked = (answer: Partial<Answer>, method: "GET" | "POST" = "GET", path = "/pets/1"): Asked[] => [
  { request: { method, path }, answer: { status: 200, body: {}, hasNext: false, ...answer } },
];
const placed = (id: unknown) => asked({ status: 201, body: { id, petId: 7 } }, "POST", "/store/orders");
const ofPet = (...ids: unknown[]) =>
  asked({ body: ids.map((id) => ({ id, petId: 7 })) }, "GET", "/store/orders?petId=7");
const between = (one: Asked[], other: Asked[]) =>
  difference({ name: "one", asked: one }, { name: "other", asked: other });

describe("is the same", () => {
  test("members in another order", () =>
    expect(between(asked({ body: { id: 1, name: "Rex" } }), asked({ body: { name: "Rex", id: 1 } }))).toBeUndefined());
  test("the number of an order", () => {
    expect(between(placed(1), placed(9))).toBeUndefined();
    expect(between(ofPet(2, 1), ofPet(9, 5))).toBeUndefined();
  });
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
  test("the id of an order that is no number", () => {
    expect(between(placed(1), placed("65a1"))).toMatch("differently");
    expect(between(ofPet(1), ofPet("65a1"))).toMatch("differently");
  });
  test("one order more", () => expect(between(ofPet(1), ofPet(2, 1))).toMatch("differently"));
  test("the id of another pet", () =>
    expect(between(asked({ body: { id: 1 } }), asked({ body: { id: 2 } }))).toBeDefined());
  test("an error without a code", () => {
    expect(
      between(asked({ status: 404, body: { code: "X", message: "", status: 404 } }), asked({ status: 404, body: {} })),
    ).toBeDefined();
  });
});

test("questions are of every workload, and of what is not there", () => {
  const all = questions(100, 1);
  const paths = [...all.values()].flat().map(({ path }) => path);
  expect([...all.keys()]).toEqual([...workloads.map(({ name }) => name), ""]);
  expect(paths).toEqual(expect.arrayContaining(["/pets/101", "/pets?limit=20", "/store/orders"]));
  expect(paths.some((path) => path.includes("categoryId="))).toBe(true);
});

test("a key is sent again, and then with another body", () => {
  const orders = questions(100, 1).get("orders") ?? [];
  const first = orders.findIndex(({ key }) => key === "new");
  const [once, again, other] = orders.slice(first, first + 3);
  expect([once?.key, again?.key, other?.key]).toEqual(["new", "again", "again"]);
  expect([again?.body === once?.body, other?.body === once?.body]).toEqual([true, false]);
});
