/** The header Accept (RFC 9110, 12.5.1). It is read in one pass, so that a long one costs no more than its length. */

/** One media range: its type in lower case, how narrow it is, and how much its types are wanted. */
interface MediaRange {
  readonly type: string;
  /** From 0 for everything to 3 for one type with parameters. */
  readonly precision: number;
  /** 0 to 1; with 0 the types are not acceptable. */
  readonly weight: number;
}

/** Without the header, or without a value, anything goes. What is no media range says nothing and is left out. */
export const parseAccept = (value = ""): readonly MediaRange[] =>
  value.trim() === "" ? [ANYTHING] : elements(value, ",").flatMap(parseRange);

const ANYTHING: MediaRange = { type: "*/*", precision: 0, weight: 1 };

/** The weight that the narrowest of the ranges gives to a type; undefined when none is about it. Of two, the higher. */
export function weightOf(ranges: readonly MediaRange[], type: string): number | undefined {
  const all = [type, `${type.split("/")[0]}/*`, "*/*"];
  let narrowest: MediaRange | undefined;
  for (const range of ranges)
    if (all.includes(range.type) && (!narrowest || isAhead(range, narrowest))) narrowest = range;
  return narrowest?.weight;
}

const isAhead = (a: MediaRange, b: MediaRange): boolean =>
  a.precision === b.precision ? a.weight > b.weight : a.precision > b.precision;

/** Whether a range is about this type and no other. */
export const isNamed = (ranges: readonly MediaRange[], type: string): boolean =>
  ranges.some((range) => range.type === type);

function parseRange(text: string): MediaRange[] {
  const [range = "", ...parameters] = elements(text, ";");
  const type = range.trim().toLowerCase();
  if (!TYPE.test(type)) return [];
  const given = parameters.map((parameter) => parameter.trim().toLowerCase());
  const at = given.findIndex((parameter) => parameter.startsWith("q="));
  const weight = at < 0 ? "1" : (given[at] as string).slice("q=".length);
  // JSON has no parameters. Some ask for it with a charset, which says nothing about it.
  const narrower = given.slice(0, at < 0 ? undefined : at).filter((parameter) => parameter !== "");
  if (!WEIGHT.test(weight) || !narrower.every((parameter) => CHARSET.test(parameter))) return [];
  const precision = type === "*/*" ? 0 : type.endsWith("/*") ? 1 : narrower.length === 0 ? 2 : 3;
  return [{ type, precision, weight: Math.min(1, Number(weight)) }];
}

const TYPE = /^(\*\/\*|[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+)$/;
const WEIGHT = /^(?=\.?\d)\d*(\.\d*)?$/; // more than three digits do no harm
const CHARSET = /^charset="?utf-8"?$/;

/** What stands between separators outside of quotes. A quote that does not end reaches to the end. */
function elements(text: string, separator: "," | ";"): string[] {
  const found: string[] = [];
  let [start, quoted] = [0, false];
  for (let i = 0; i < text.length; i++) {
    const sign = text[i];
    if (sign === '"') quoted = !quoted;
    else if (sign === "\\" && quoted) i++;
    else if (sign === separator && !quoted) {
      found.push(text.slice(start, i));
      start = i + 1;
    }
  }
  return [...found, text.slice(start)];
}
