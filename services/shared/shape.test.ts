import { describe, expect, test } from "vitest";
import * as z from "zod";
import { misfit, shapeOf } from "./shape.ts";

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
const leaf = shapeOf<Leaf>()({ size: z.int() });
const [name, state, green] = [z.string(), z.literal(["ALIVE", "DEAD"]), z.boolean().optional()];
const rest = { leaf: leaf.optional(), roots: z.record(z.string(), leaf) };
const tree = shapeOf<Tree>()({ ...rest, name, state, green });
const oak = { name: "Oak", state: "ALIVE", roots: {} };

test.each([
  ["all that there must be", oak],
  ["all that there may be", { ...oak, green: true, leaf: { size: -1 }, roots: { a: { size: 1 }, b: { size: 2 } } }],
  ["a field that nobody knows", { ...oak, height: 3 }],
  ["undefined for what may be missing", { ...oak, green: undefined }],
])("%s fits", (_, value) => expect(misfit(tree, value)).toBeUndefined());

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
  ])("%j", (value, where) => expect(misfit(tree, value)).toBe(where));
});

test("the compiler refuses a shape of another type", () => {
  const shapeOfTree = shapeOf<Tree>();
  // @ts-expect-error: a field is forgotten
  shapeOfTree({ ...rest, state, green });
  // @ts-expect-error: a field that may be missing is forgotten
  shapeOfTree({ ...rest, name, state });
  // @ts-expect-error: a field of no tree
  shapeOfTree({ ...rest, name, state, green, height: z.int() });
  // @ts-expect-error: a field of another type
  shapeOfTree({ ...rest, name: z.int(), state, green });
  // @ts-expect-error: a value is forgotten
  shapeOfTree({ ...rest, name, state: z.literal("ALIVE"), green });
  // @ts-expect-error: a value too many
  shapeOfTree({ ...rest, name, state: z.literal(["ALIVE", "DEAD", "FROZEN"]), green });
  // @ts-expect-error: what may be missing must be there
  shapeOfTree({ ...rest, name, state, green: z.boolean() });
  // @ts-expect-error: what must be there may be missing
  shapeOfTree({ ...rest, name: z.string().optional(), state, green });
  // @ts-expect-error: a part is of another type
  shapeOfTree({ ...rest, name, state, green, leaf: z.object({ size: z.string() }).optional() });
});
