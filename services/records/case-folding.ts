/**
 * Texts without the case of their letters: two are the same here if JavaScript's regular expressions with the flags `iu` take
 * them for the same (Unicode's simple case folding). So K, k and the kelvin sign are one letter, and so are ß and ẞ, but not
 * ß and ss. A text keeps its number of characters.
 *
 * How an assigned character folds never changes. A Node that knows a newer Unicode may fold characters that were not assigned
 * before: a record that has one in its name is found by it once it is written again.
 */
export const foldCase = (text: string): string => Array.from(text, foldCharacter).join("");

/** Characters that don't fold as their upper case does. */
const OTHERS: ReadonlyMap<string, string> = new Map([
  // Its upper case is that of i, which it is not.
  ["\u0131", "\u0131"],
  // Their upper case is several characters, the same as that of another one.
  ["\u1fd3", "\u0390"],
  ["\u1fe3", "\u03b0"],
  ["\ufb05", "\ufb06"],
]);

function foldCharacter(character: string): string {
  const other = OTHERS.get(character);
  if (other !== undefined) return other;
  const upper = character.toUpperCase();
  const lower = (isOne(upper) ? upper : character).toLowerCase();
  return isOne(lower) ? lower : character;
}

const isOne = (text: string): boolean => [...text].length === 1;
