import { serialize } from "bson";
import { expect, test } from "vitest";
import { copyOf } from "./fold.ts";

const MOST = 16 * 1024 * 1024 - 16 * 1024;

const everything: Record<string, unknown> & { simple: unknown[]; nested: { items: number[]; gone: undefined } } = {
  _id: 1,
  numbers: [0, -0, 1, -1, 1.5, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), -(2 ** 31) - 1, 2 ** 53 - 1],
  simple: [true, false, null, undefined, "", "\u{1F600}é"],
  nested: { "": {}, é: [[], [[{}]]], 12: 1, gone: undefined, items: Array.from({ length: 120 }, (_, i) => i) },
  ...JSON.parse('{"extra": {"__proto__": {"a": 1}}}'),
};

test("a copy equals what it was made from, and shares nothing with it", () => {
  const copy = copyOf(everything);
  expect(serialize(copy)).toEqual(serialize(everything, { ignoreUndefined: true }));
  const { gone: _, ...nested } = everything.nested;
  expect(copy).toStrictEqual({
    ...everything,
    nested,
    simple: everything.simple.map((value: unknown) => value ?? null),
  });
  copy.nested.items.push(7);
  expect(everything.nested.items).toHaveLength(120);
});

test("its bytes are counted exactly", () => {
  const filled = (length: number) => ({ ...everything, filler: "x".repeat(length) });
  const length = MOST - serialize(filled(0), { ignoreUndefined: true }).length;
  expect(serialize(copyOf(filled(length)))).toHaveLength(MOST);
  expect(() => copyOf(filled(length + 1))).toThrow(RangeError);
});

test("what is wrong is said with its place", () => {
  const place = (extra: unknown) => () => copyOf({ _id: 1, extra });
  expect(place({ tags: ["a", { b: 1n }] })).toThrow("extra.tags[1].b is a bigint");
  expect(place([[Number.NaN]])).toThrow("extra[0][0] is NaN");
  expect(place({ $ref: 1 })).toThrow("extra.$ref: a field can't have this name.");
});
