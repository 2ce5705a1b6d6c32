import { describe, expect, test } from "vitest";
import * as s from "./document-schema.ts";

const leaf = s.object({ size: s.int });
const tree = s.object({
  name: s.string,
  state: s.literal(["ALIVE", "DEAD"]),
  green: s.boolean.optional,
  leaf: leaf.optional,
  age: s.int.optional,
  code: s.stringLike(/^[A-Z]+$/).optional,
});
const oak = { name: "Oak", state: "ALIVE" };

test.each([
  ["all that there must be", oak],
  ["all that there may be", { ...oak, green: true, leaf: { size: -1 }, age: 1000, code: "OAK" }],
  ["a field that nobody knows", { ...oak, height: 3 }],
  ["undefined for what may be missing", { ...oak, green: undefined }],
])("%s fits", (_, value) => expect(tree(value)).toBeUndefined());

describe("a validation error says where it is", () => {
  test.each([
    [undefined, ""],
    [null, ""],
    ["oak", ""],
    [[], ""],
    [{ ...oak, name: 7 }, "name"],
    [{ ...oak, name: undefined }, "name"],
    [{ ...oak, state: "FROZEN" }, "state"],
    [{ ...oak, green: "yes" }, "green"],
    [{ ...oak, green: null }, "green"],
    [{ ...oak, leaf: { size: 1.5 } }, "leaf.size"],
    [{ ...oak, leaf: { size: 2 ** 53 } }, "leaf.size"],
    [{ ...oak, leaf: [] }, "leaf"],
    [{ ...oak, leaf: {} }, "leaf.size"],
    [{ ...oak, age: 1.5 }, "age"],
    [{ ...oak, code: "oak" }, "code"],
    [{ ...oak, code: 7 }, "code"],
  ])("%j", (value, where) => expect(tree(value)).toBe(where));
});
