/** A JSON value that is being made. Integers beyond 2^53 are bigints; members that are undefined are left out. */
export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [member: string]: Json | undefined;
}

/** The content of a body that is bytes of any type. */
export const BYTES: JsonObject = { "*/*": { schema: { type: "string", format: "binary" } } };

/** JSON text in which a bigint is an integer with all its digits. It is YAML as well, as which many tools read documents. */
export function jsonText(value: Json): string {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "string") return stringText(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (isArray(value)) return `[${value.map(jsonText).join(",")}]`;
  const members = Object.entries(value).flatMap(([name, member]) =>
    member === undefined ? [] : [`${stringText(name)}:${jsonText(member)}`],
  );
  return `{${members.join(",")}}`;
}

const stringText = (text: string): string =>
  JSON.stringify(text).replaceAll(NOT_IN_YAML, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** What YAML may not hold as it is (YAML 1.2, 5.1), or takes for a line break (YAML 1.1, 5.4), though JSON may. */
const NOT_IN_YAML = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;

const isArray = (value: Json): value is readonly Json[] => Array.isArray(value);
