/** A JSON value that is being made. Integers beyond 2^53 are bigints; members that are undefined are left out. */
export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [member: string]: Json | undefined;
}

/** JSON text in which a bigint is an integer with all its digits. */
export function jsonText(value: Json): string {
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (isArray(value)) return `[${value.map(jsonText).join(",")}]`;
  const members = Object.entries(value).flatMap(([name, member]) =>
    member === undefined ? [] : [`${JSON.stringify(name)}:${jsonText(member)}`],
  );
  return `{${members.join(",")}}`;
}

const isArray = (value: Json): value is readonly Json[] => Array.isArray(value);
