import { isDeepStrictEqual } from "node:util";
import { deserialize, serialize } from "bson";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readBson } from "./codec.ts";

const name = fc.oneof(
  fc.constantFrom("_id", "rev", "facts", "name", "", "7", "constructor", "toString"),
  fc.string({ unit: "binary-ascii", maxLength: 40 }),
  fc.string({ unit: "binary", maxLength: 5 }),
  fc.constantFrom("__proto__", "$ref", "$id", "$db", "é"),
);
const text = fc.oneof(
  fc.string({ unit: "binary-ascii", maxLength: 50 }),
  fc.string({ unit: "binary", maxLength: 50 }),
  fc.constantFrom("available", "\ufffd", "\ufeffa", "é".repeat(20)),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.integer(),
    text,
    fc.boolean(),
    fc.constantFrom(null, -0, 0.1, 2 ** 31, -(2 ** 53), Number.NaN, new Date(-1), new Date(2 ** 40)),
    fc.double(),
    fc.array(tie("value"), { maxLength: 12 }),
    fc.dictionary(
      name.filter((one) => !one.includes("\0")),
      tie("value"),
      { maxKeys: 6 },
    ),
    // Not written by the store.
    fc.constantFrom(2n ** 60n, /a/, new Uint8Array(3)),
  ),
}));
const doc = fc.dictionary(
  name.filter((one) => !one.includes("\0")),
  value,
  { maxKeys: 12 },
);

/** What the library says; undefined when it refuses. */
function judged(bytes: Uint8Array): unknown {
  try {
    return deserialize(bytes);
  } catch {
    return undefined;
  }
}

/** Same values, prototypes and order of members. */
function expectSame(bytes: Uint8Array): void {
  const read = readBson(bytes);
  if (read === undefined) return;
  const expected = judged(bytes);
  expect(isDeepStrictEqual(read, expected)).toBe(true);
  expect(JSON.stringify(read)).toBe(JSON.stringify(expected));
}

describe("what is read is what the library reads", () => {
  test("of any document", () => {
    fc.assert(
      fc.property(doc, (one) => expectSame(serialize(one))),
      { numRuns: 2000 },
    );
  });

  test("and of bytes that are damaged", () => {
    const damage = fc.record({ at: fc.nat(), byte: fc.nat({ max: 255 }), cut: fc.integer({ min: -3, max: 3 }) });
    fc.assert(
      fc.property(doc, fc.array(damage, { minLength: 1, maxLength: 3 }), (one, damages) => {
        let bytes = serialize(one);
        for (const { at, byte, cut } of damages) {
          bytes[at % bytes.length] = byte;
          if (cut > 0) bytes = bytes.subarray(0, bytes.length - cut);
          if (cut < 0) bytes = new Uint8Array([...bytes, ...bytes.subarray(0, -cut)]);
          if (bytes.length === 0) break;
        }
        expectSame(bytes);
      }),
      { numRuns: 5000 },
    );
  });
});

test("what the store writes is read without the library", () => {
  const stored = {
    _id: 7,
    rev: 2 ** 40,
    facts: { name: "Rex é \u{1F600}", tags: ["a", ["b"], {}] },
    none: null,
    visible: true,
    _operations: [{ by: "0123456789ab", number: 1, rev: -1.5 }],
  };
  expect(readBson(serialize(stored))).toStrictEqual(stored);
});

test.each([
  ["no bytes", new Uint8Array()],
  ["a length beyond the bytes", Uint8Array.of(9, 0, 0, 0, 0)],
  ["a text without its end", Uint8Array.of(14, 0, 0, 0, 2, 97, 0, 2, 0, 0, 0, 98, 98, 0)],
  ["a name without its end", Uint8Array.of(8, 0, 0, 0, 16, 97, 97, 97)],
  ["a boolean that is neither", Uint8Array.of(9, 0, 0, 0, 8, 97, 0, 2, 0)],
  ["a document that ends early", Uint8Array.of(14, 0, 0, 0, 3, 97, 0, 6, 0, 0, 0, 0, 0, 0)],
  ["a date", serialize({ a: new Date(5) })],
  ["an integer of 64 bits", serialize({ a: 2n ** 60n })],
  ["a text that is no UTF-8", Uint8Array.of(14, 0, 0, 0, 2, 97, 0, 2, 0, 0, 0, 255, 0, 0)],
  ["a reference", serialize({ a: { $ref: "b", $id: 1 } })],
])("%s is for the library", (_, bytes) => expect(readBson(bytes)).toBeUndefined());

test("texts that are met for the first time and again are the same", () => {
  for (let round = 0; round < 2; round++)
    for (let i = 0; i < 5000; i++) expect(readBson(serialize({ [`n${i}`]: `t${i}` }))).toEqual({ [`n${i}`]: `t${i}` });
});
