/** From patterns of RE2, as rules have them, to those of ECMA-262, as JSON Schema has them. */

/** Within brackets. In ECMA-262 `\s` is all white space of Unicode, in RE2 it is these. */
const SPACE = String.raw`\t\n\f\r `;

/** What both write alike and mean alike. `\d`, `\w` and `\b` are of ASCII in both. */
const SAME = /\\(?:[dDwWtnrfv]|x[\dA-Fa-f]{2})/y;
/** A character that stands for itself: all of ASCII but letters and digits may be escaped in RE2. */
const ESCAPED = /\\(?:([^\dA-Za-z\x80-\u{10FFFF}])|x\{([\dA-Fa-f]+)\})/uy;

/** What stands for itself only behind a backslash. */
const OUTSIDE_SIGNS = /[\^$\\.*+?()[\]{}|]/;
const INSIDE_SIGNS = /[\^\\[\]-]/;

type Token = readonly [token: RegExp, write: (...found: string[]) => string];

const OUTSIDE: readonly Token[] = [
  [/\\[bB]|\{\d+(?:,\d*)?\}|\(\?:|\((?!\?)|[^\\.()[\]{}]|\)/uy, (same) => same],
  [SAME, (same) => same],
  [ESCAPED, (_, sign, code) => escaped(OUTSIDE_SIGNS, sign, code)],
  [/\\s/y, () => `[${SPACE}]`],
  [/\\S/y, () => `[^${SPACE}]`],
  [/\\A/y, () => "^"],
  [/\\z/y, () => "$"],
  [/\./y, () => "[^\\n]"],
  [/\(\?P?<\w+>/y, () => "(?:"],
  [/[{}\]]/y, (sign) => `\\${sign}`],
];

/** Without the names of classes that RE2 has there, such as `[:alpha:]`. */
const INSIDE: readonly Token[] = [
  [/(?!\[:)[^\\\]]/uy, (same) => same],
  [SAME, (same) => same],
  [ESCAPED, (_, sign, code) => escaped(INSIDE_SIGNS, sign, code)],
  // Before a hyphen it would begin a range.
  [/\\s(?!-[^\]])/y, () => SPACE],
];

const escaped = (signs: RegExp, sign: string | undefined, code = ""): string =>
  (sign ?? String.fromCodePoint(Number.parseInt(code, 16))).replace(signs, "\\$&");

/** As it can be read wherever it is copied to. Beyond 16 bits languages differ in their escapes, and need flags. */
const escapedBeyondAscii = (text: string): string =>
  text.replaceAll(/[^ -~\u{10000}-\u{10FFFF}]/gu, (sign) => {
    const code = sign.charCodeAt(0).toString(16).toUpperCase();
    return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
  });

/**
 * In code it would be wrong: a line break of Unicode ends a literal of JavaScript, and some generators of clients write even its
 * escape as the character; and they leave out the flag "u", without which a character beyond 16 bits is two.
 */
const UNSAFE = /\\u202[89]|[^ -~]/;

/** Any character. */
const ANY: Token = [/\[(?:\\s\\S|\\S\\s)\]/y, (same) => same];
/** A bracket behind the opening one is an item in RE2, and the end in ECMA-262. */
const BEGIN: Token = [/\[(?:\^(?!\])|(?![\]^]))/y, (same) => same];
const END: Token = [/\]/y, (same) => same];

/**
 * The same in ECMA-262; undefined for what RE2 alone knows, or knows by other tables of Unicode, and for what can't be copied
 * into code. What means one thing here and another there is spelled out: `\s` and `.`.
 */
export function ecmaPattern(re2: string): string | undefined {
  let text = "";
  let at = 0;
  let tokens = OUTSIDE;
  const take = ([token, write]: Token): boolean => {
    token.lastIndex = at;
    const found = token.exec(re2);
    if (!found) return false;
    at = token.lastIndex;
    text += write(...found);
    return true;
  };
  try {
    while (at < re2.length) {
      const isOutside = tokens === OUTSIDE;
      if (isOutside && take(ANY)) continue;
      if (take(isOutside ? BEGIN : END)) tokens = isOutside ? INSIDE : OUTSIDE;
      else if (!tokens.some(take)) return undefined;
    }
    new RegExp(text, "u");
    const shown = escapedBeyondAscii(text);
    return UNSAFE.test(shown) ? undefined : shown;
  } catch {
    return undefined;
  }
}

/** As it can stand in a comment of generated code: what would end the comment or its line, or isn't seen, by its number. */
export const re2Text = (re2: string): string =>
  re2.replaceAll(/\\?(.)/gsu, (token, sign: string, at: number) => {
    const isComment = sign === "/" && (re2[at - 1] === "*" || re2[at + token.length] === "*");
    return isComment || /[^ -~]/u.test(sign) ? `\\x{${(sign.codePointAt(0) as number).toString(16)}}` : token;
  });
