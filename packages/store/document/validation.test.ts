import { describe, expect, test } from "vitest";
import * as z from "zod";
import { validationError } from "./validation.ts";

const leaf = z.object({ size: z.int() });
const tree = z.object({
  name: z.string(),
  state: z.literal(["ALIVE", "DEAD"]),
  green: z.boolean().optional(),
  leaf: leaf.optional(),
  roots: z.record(z.string(), leaf),
});
const oak = { name: "Oak", state: "ALIVE", roots: {} };

test.each([
  ["all that there must be", oak],
  ["all that there may be", { ...oak, green: true, leaf: { size: -1 }, roots: { a: { size: 1 }, b: { size: 2 } } }],
  ["a field that nobody knows", { ...oak, height: 3 }],
  ["undefined for what may be missing", { ...oak, green: undefined }],
])("%s fits", (_, value) => expect(validationError(tree, value)).toBeUndefined());

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
    [{ ...oak, roots: [] }, "roots"],
    [{ ...oak, roots: { a: { size: 1 }, b: {} } }, "roots.b.size"],
  ])("%j", (value, where) => expect(validationError(tree, value)).toBe(where));
});
