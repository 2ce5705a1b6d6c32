/** Values and texts of a document, as the tools that read documents need them. */

/** A JSON value that is being made. Integers beyond 2^53 are bigints; members that are undefined are left out. */
export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [member: string]: Json | undefined;
}

/** The content of a body that is bytes of any type. */
export const BYTES: JsonObject = { "*/*": { schema: { type: "string", format: "binary" } } };

/** A reference to a component. */
export const refer = (kind: string, name: string): JsonObject => ({ $ref: `#/components/${kind}/${name}` });

/** JSON text in which a bigint is an integer with all its digits. It is YAML as well, as which many tools read documents. */
export function jsonText(value: Json): string {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "string") return stringText(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(jsonText).join(",")}]`;
  const members = Object.entries(value).flatMap(([name, member]) =>
    member === undefined ? [] : [`${stringText(name)}:${jsonText(member)}`],
  );
  return `{${members.join(",")}}`;
}

const stringText = (text: string): string =>
  JSON.stringify(text).replaceAll(NOT_IN_YAML, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** What YAML may not hold as it is (YAML 1.2, 5.1), or takes for a line break (YAML 1.1, 5.4), though JSON may. */
const NOT_IN_YAML = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;

const LINE_BREAKS = /\r\n|[\r\v\f\x85\u2028\u2029]/g;
const SPACES = /\p{Zs}/gu;
/** Controls, what turns the direction of text, and what is no character. */
const REFUSED = /(?![\n\t])[\p{Cc}\p{Cs}\p{Bidi_Control}\p{Noncharacter_Code_Point}\uFEFF]/gu;
const COMMENT_SIGNS = /(?<=\*)(?=\/)|(?<=\/)(?=\*)/g;

/**
 * A text of a contract. Generators of clients put it into comments, whatever the language: nothing in it ends a comment or,
 * unseen, its line, and nothing is there that a compiler refuses.
 */
export const prose = (text: string): string =>
  text.replaceAll(LINE_BREAKS, "\n").replaceAll(SPACES, " ").replaceAll(REFUSED, "").replaceAll(COMMENT_SIGNS, " ");

/** What stands on one line: titles, summaries, names. */
export const line = (text: string): string => prose(text).replaceAll(/\s+/g, " ").trim();
