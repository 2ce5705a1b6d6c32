import { describe, expect, test } from "vitest";
import { flag, mapOf, object, oneOf, optional, partial, text, whole } from "./shape.ts";

interface Leaf {
  readonly size: number;
}
interface Tree {
  readonly name: string;
  readonly state: "ALIVE" | "DEAD";
  readonly green?: boolean | undefined;
  readonly leaf?: Leaf | undefined;
  readonly roots: Readonly<Record<string, Leaf>>;
}
const leaf = object<Leaf>({ size: whole });
const tree = object<Tree>({
  name: text,
  state: oneOf("ALIVE", "DEAD"),
  green: optional(flag),
  leaf: optional(leaf),
  roots: mapOf(leaf),
});
const oak = { name: "Oak", state: "ALIVE", roots: {} };

test.each([
  ["all that there must be", oak],
  ["all that there may be", { ...oak, green: true, leaf: { size: -1 }, roots: { a: { size: 1 }, b: { size: 2 } } }],
  ["a field that nobody knows", { ...oak, height: 3 }],
  ["undefined for what may be missing", { ...oak, green: undefined }],
])("%s fits", (_, value) => expect(tree(value)).toBeUndefined());

describe("a misfit is found, and said where it is", () => {
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
  ])("%j", (value, where) => expect(tree(value)).toBe(where));
});

test("of a partial object anything may be missing, and nothing may be wrong", () => {
  const some = partial<Leaf>({ size: whole });
  expect([some({}), some({ size: 1 }), some({ size: "1" })]).toEqual([undefined, undefined, "size"]);
});
