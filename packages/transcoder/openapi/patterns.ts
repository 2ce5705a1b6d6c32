/** From patterns of RE2, as rules have them, to those of ECMA-262, as JSON Schema has them. */

/** Behind a backslash. `\d`, `\w` and `\b` are of ASCII in both. */
const ESCAPED = String.raw`[dDwWtnrfv^$\\.*+?()[\]{}|/]|x[\dA-Fa-f]{2}|x\{[\dA-Fa-f]{1,4}\}`;
/** Without names of classes, such as `[:alpha:]`, and not empty: what would end it is an item in RE2. */
const BRACKETS = String.raw`\[(?!\^?\])\^?(?:\\(?:${ESCAPED}|-)|(?!\[:)[ -[^-~])+\]`;
/** What both write alike and mean alike, but for the codes of characters and for `.`. */
const TOKENS = new RegExp(
  String.raw`${BRACKETS}|\\(?:${ESCAPED}|[bB])|\{\d+(?:,\d*)?\}|\(\?:|\((?!\?)|(?![\\([\]{}])[ -~]`,
  "gy",
);

const coded = (sign: string) => `\\x{${(sign.codePointAt(0) as number).toString(16)}}`;

/** As it can be read wherever it is copied to. */
const written = (token: string): string =>
  token === "."
    ? "[^\\n]"
    : token.replaceAll(/\\(?:x\{([\dA-Fa-f]+)\}|.)/g, (same, hex?: string) => {
        const code = hex?.replace(/^0+(?=..)/, "").toUpperCase();
        return code === undefined
          ? same
          : code.length > 2
            ? `\\u${code.padStart(4, "0")}`
            : `\\x${code.padStart(2, "0")}`;
      });

/**
 * In code it would be wrong: a line break of Unicode ends a literal of JavaScript, and some generators of clients write even its
 * escape as the character.
 */
const UNSAFE = /\\u202[89]/;

/**
 * The same in ECMA-262; undefined for what the two write in different ways or RE2 alone knows, and for what can't be copied into
 * code. Characters beyond 16 bits can't: languages differ in their escapes, and without a flag such a character is two.
 */
export function ecmaPattern(re2: string): string | undefined {
  const printable = re2.replaceAll(/\\?([^ -~])|\\./gsu, (token, sign?: string) => (sign ? coded(sign) : token));
  const tokens = printable.match(TOKENS) ?? [];
  const text = tokens.map(written).join("");
  if (tokens.join("") !== printable || UNSAFE.test(text)) return undefined;
  try {
    new RegExp(text, "u");
    return text;
  } catch {
    return undefined;
  }
}

/** As it can stand in a comment of generated code: what would end the comment or its line, or isn't seen, by its number. */
export const re2Text = (re2: string): string =>
  re2.replaceAll(/\\?(.)/gsu, (token, sign: string, at: number) => {
    const isComment = sign === "/" && (re2[at - 1] === "*" || re2[at + token.length] === "*");
    return isComment || /[^ -~]/u.test(sign) ? coded(sign) : token;
  });
