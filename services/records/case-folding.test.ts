import { describe, expect, test } from "vitest";
import { foldCase } from "./folded-names.ts";

const LAST = 0x10ffff;
const isSurrogate = (code: number) => code >= 0xd800 && code <= 0xdfff;
const characters = Array.from({ length: LAST + 1 }, (_, code) => code)
  .filter((code) => !isSurrogate(code))
  .map((code) => String.fromCodePoint(code));
const escaped = (some: readonly string[]) => some.map((one) => `\\u{${one.codePointAt(0)?.toString(16)}}`).join("");
const anyOf = (some: readonly string[]) => new RegExp(`[${escaped(some)}]`, "iu");

describe("of all characters", () => {
  const changed = characters.filter((one) => foldCase(one) !== one);
  /** All that Unicode has a case for, and all that fold. */
  const hasCase = /[\p{Cased}\p{Changes_When_Casemapped}\p{Changes_When_Casefolded}]/u;
  const withCase = characters.filter((one) => hasCase.test(one) || foldCase(one) !== one);

  test("one that folds to another is the same as that to a regular expression", () => {
    expect(changed.length).toBeGreaterThan(1_400);
    expect(changed.filter((one) => !new RegExp(`^${escaped([foldCase(one)])}$`, "iu").test(one))).toEqual([]);
    expect(changed.filter((one) => foldCase(foldCase(one)) !== foldCase(one))).toEqual([]);
  });

  test("those that fold to different ones are different to it", () => {
    const cased = new Set(withCase);
    const isCased = anyOf(withCase);
    expect(characters.filter((one) => !cased.has(one) && isCased.test(one))).toEqual([]);
    // Two that fold to different ones are on different sides at least once.
    for (let bit = 1; bit <= LAST; bit *= 2) {
      const isOn = (one: string) => ((foldCase(one).codePointAt(0) as number) & bit) !== 0;
      const [on, off] = [withCase.filter(isOn), withCase.filter((one) => !isOn(one))];
      const matches = anyOf(on.length > 0 ? on : ["\0"]);
      expect(off.filter((one) => matches.test(one))).toEqual([]);
    }
  });

  test("each stays one", () => {
    expect(changed.filter((one) => [...foldCase(one)].length !== 1)).toEqual([]);
  });
});

test("a text folds character by character", () => {
  expect(foldCase("ΣÍSYPHOS ẞ, \u{10400}\u212a")).toBe("σísyphos ß, \u{10428}k");
  expect(foldCase("ς")).toBe(foldCase("Σ"));
  expect(["ß", "İ", "ı"].map(foldCase)).toEqual(["ß", "İ", "ı"]);
});
