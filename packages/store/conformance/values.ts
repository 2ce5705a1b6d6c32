/** What a document may hold comes back as it was; what it may not is refused before anything is stored. */
import { expect } from "vitest";
import { it, type OpenSubject, PETS, save, wrong } from "./subject.ts";

const cycle: Record<string, unknown> = {};
cycle.self = cycle;

const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);

const legal: readonly (readonly [string, unknown])[] = [
  ["integers", [0, 1, -5, 2 ** 31, -(2 ** 31), 2 ** 53 - 1, -(2 ** 53 - 1)]],
  ["fractions", [1.5, -0.1, 5e-324, 0.1 + 0.2]],
  ["simple values", [true, false, null, ""]],
  ["strings of any character", "\u{1F600}\u0000x \ufffd é e\u0301"],
  ["nested arrays and objects", { list: [[1], [], {}], tree: { leaf: { empty: {} } } }],
  ["any field name", { "a.b": 1, "": 2, constructor: 3, length: 4, 12: 5, "é\u{1F600}": 6 }],
  ["__proto__ as a field", JSON.parse('{"__proto__": {"polluted": true}}')],
  ["98 levels", nested(98)],
];

const illegal: readonly (readonly [string, unknown, typeof Error])[] = [
  ["a bigint", 1n, TypeError],
  ["an integer beyond 2^53-1", 2 ** 53, RangeError],
  ["a negative one", -(2 ** 53), RangeError],
  ["1e300", 1e300, RangeError],
  ["NaN", Number.NaN, TypeError],
  ["Infinity", Number.POSITIVE_INFINITY, TypeError],
  ["a function", () => 1, TypeError],
  ["a symbol", Symbol("x"), TypeError],
  ["a Map", new Map([["a", 1]]), TypeError],
  ["bytes", Uint8Array.of(1), TypeError],
  ["a regular expression", /x/, TypeError],
  ["an instance of a class", new (class Box {})(), TypeError],
  ["a date", new Date(0), TypeError],
  ["half a character", "x\ud800", TypeError],
  ["a field named $ref", { $ref: "pets" }, TypeError],
  ["a field with U+0000", { "a\0b": 1 }, TypeError],
  ["a field named _bsontype", { _bsontype: "Long" }, TypeError],
  ["a cycle", cycle, RangeError],
  ["101 levels", nested(101), RangeError],
  ["17 MB", "x".repeat(17e6), RangeError],
  ["16 MiB in many pieces", Array.from({ length: 17 }, () => "x".repeat(1e6)), RangeError],
];

export function values(open: OpenSubject): void {
  for (const [name, extra] of legal) {
    it(open, `${name} come back`, async ({ pets, reopen }) => {
      await save(pets, { _id: 1, name: "Rex", extra });
      expect(await pets.get(1)).toStrictEqual({ _id: 1, name: "Rex", extra, rev: 1 });
      const again = await (await reopen()).collection(PETS);
      expect(await again.get(1)).toStrictEqual({ _id: 1, name: "Rex", extra, rev: 1 });
    });
  }

  for (const [name, extra, kind] of illegal) {
    it(open, `${name} is refused, wherever it hides`, async ({ pets }) => {
      await save(pets, { _id: 1, name: "Rex" });
      await expect(save(pets, { _id: 1, name: "Max", extra })).rejects.toThrow(kind);
      await expect(save(pets, { _id: 2, name: "Max", extra: [{ deep: extra }] })).rejects.toThrow(kind);
      expect(await pets.list({ limit: 9, order: "asc" })).toEqual([{ _id: 1, name: "Rex", rev: 1 }]);
    });
  }

  it(open, "undefined fields are left out, undefined items become null", async ({ pets, reopen }) => {
    await save(pets, { _id: 1, name: "Rex", flag: wrong(undefined), extra: { a: undefined, b: null, c: [undefined] } });
    const kept = { _id: 1, name: "Rex", extra: { b: null, c: [null] }, rev: 1 };
    expect(await pets.get(1)).toStrictEqual(kept);
    expect(await (await (await reopen()).collection(PETS)).get(1)).toStrictEqual(kept);
  });

  it(open, "an indexed field refuses null, objects and what is no value", async ({ pets }) => {
    await save(pets, { _id: 1, name: "Rex" });
    for (const name of [null, {}, [], ["Rex"], new Date(0), Number.NaN, 1n].map(wrong)) {
      await expect(save(pets, { _id: 1, name })).rejects.toThrow(TypeError);
      await expect(save(pets, { _id: 2, name })).rejects.toThrow(TypeError);
    }
    expect(await pets.list({ limit: 9, order: "asc" })).toEqual([{ _id: 1, name: "Rex", rev: 1 }]);
  });

  it(open, "the largest ids are exact, and a string of digits is no number", async ({ pets, notes }) => {
    for (const id of [2 ** 53 - 1, 2 ** 53 - 2, 0, -1, -(2 ** 53 - 1)]) await save(pets, { _id: id, name: `n${id}` });
    expect((await pets.get(2 ** 53 - 2))?.name).toBe("n9007199254740990");
    expect((await pets.get(2 ** 53 - 1))?.name).toBe("n9007199254740991");
    await save(notes, { _id: "42" });
    expect((await notes.get("42"))?._id).toBe("42");
    expect(await notes.get(wrong(42))).toBeUndefined();
  });
}
