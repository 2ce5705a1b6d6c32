import { RE2JS } from "@bufbuild/re2";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ecmaPattern } from "./rules.ts";

/** Signs by which the two could be told apart. */
const SIGNS = [..."ab_Zk\u212A\u017F09-^]\\{}.,:/ \t\n\v\f\r\0\u00A0\u2028\u2029\uFEFF\u00E9\u0660\u{1F600}"];

const ATOMS = [
  ..."ab-,:/@\u00E9\u{1F600}^$.]{}",
  ..."dDwWsSbBAztnrfv".split("").map((letter) => `\\${letter}`),
  ..."-_@.*[]{}\\/ ".split("").map((sign) => `\\${sign}`),
  ...["\\x41", "\\x{2028}", "\\x{2d}", "(?i)", "(?s:.)", "(?P<n>a)", "(?=a)", "\\pL", "\\p{Greek}", "\\07", "\\Qa.\\E"],
];
const ITEMS = [
  ...["a", "b-z", "-", "^", "[", ":", ".", "$", "{", "\\d", "\\W", "\\s", "\\S", "\\]", "\\-", "\\^", "\\x{5d}", "\\t"],
  ...["[:alpha:]", "[:^space:]", "\\pL", "]", "\u2028"],
];
const bracketed = fc
  .tuple(fc.constantFrom("", "^", "]", "^]"), fc.array(fc.constantFrom(...ITEMS), { minLength: 1, maxLength: 4 }))
  .map(([begin, items]) => `[${begin}${items.join("")}]`);
const atom = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...ATOMS) }, { weight: 2, arbitrary: bracketed });
const repeated = fc
  .tuple(atom, fc.constantFrom("", "", "*", "+", "?", "*?", "{2}", "{1,}", "{,2}", "++"))
  .map((parts) => parts.join(""));
const sequence = fc.array(repeated, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(""));
const pattern = fc.oneof(
  sequence,
  sequence.map((part) => `^${part}$`),
  fc.tuple(sequence, sequence).map(([a, b]) => `^(?:${a}|(${b}))$`),
);

const isRe2 = (text: string): boolean => {
  try {
    RE2JS.compile(text);
    return true;
  } catch {
    return false;
  }
};

test("a pattern is shown only as one that matches the same texts", () => {
  const text = fc.array(fc.constantFrom(...SIGNS), { maxLength: 4 }).map((signs) => signs.join(""));
  let shown = 0;
  fc.assert(
    fc.property(pattern.filter(isRe2), fc.array(text, { minLength: 20, maxLength: 20 }), (re2, texts) => {
      const ecma = ecmaPattern(re2);
      if (ecma === undefined) return;
      shown++;
      // From the beginning on, for V8 14 does not find /[^a]$/u in one character of two units.
      const [theirs, ours] = [RE2JS.compile(re2), new RegExp(`^[\\s\\S]*?(?:${ecma})`, "u")];
      const differing = [...texts, ...SIGNS].filter((one) => theirs.test(one) !== ours.test(one));
      expect(differing, `${re2} is shown as ${ecma}`).toEqual([]);
      expect(ecma).toMatch(/^[ -~]*$/);
      expect(() => new RegExp(ecma), `${ecma}, without the flag`).not.toThrow();
    }),
    // Of what is drawn by chance, a seventh is shown, more or less: with a seed it is always the same.
    { numRuns: 4000, seed: 1 },
  );
  expect(shown).toBeGreaterThan(500);
});

test.each([
  ["^[^\\x00]*[^\\x00\\x09-\\x0D\\x20\u0085]$", "^[^\\x00]*[^\\x00\\x09-\\x0D\\x20\\x85]$"],
  ["\n\\\r[\t\u2000-\u2040]\u00a0\\\\\u0000\\x{feff}", "\\x0A\\x0D[\\x09\\u2000-\\u2040]\\xA0\\\\\\x00\\uFEFF"],
  ["^\\d{3}-\\w+$", "^\\d{3}-\\w+$"],
  ["^.[.]\\.$", "^[^\\n][.]\\.$"],
  ["[\\\\x{41}]", "[\\\\x{41}]"],
])("%s is shown", (re2, ecma) => {
  expect(ecmaPattern(re2)).toBe(ecma);
});

test.each([
  "(?i)a",
  "(?s).",
  "\\pL",
  "\\p{L}",
  "[[:alpha:]]",
  "[]a[b]",
  "[^]a[b]",
  "[\\s-z]",
  "\\Qa.b\\E",
  "\\07",
  "^*",
  "a\u2028",
  "[a\\x{2029}]",
  "[^\u2000-\u2028]",
  "\u{1F600}",
  "[!-\\x{10FFFF}]",
  "[a\\S]",
  "\\s",
  "[\\s\\S]",
  "\\Aa\\z",
  "a\\-b",
  "(?P<year>\\d+)",
  "a{,2}",
])("%s has no such pattern", (re2) => {
  expect(isRe2(re2)).toBe(true);
  expect(ecmaPattern(re2)).toBeUndefined();
});
