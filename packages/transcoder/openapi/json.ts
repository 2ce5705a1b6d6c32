/** A JSON value that is being made. Integers beyond 2^53 are bigints; members that are undefined are left out. */
export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [member: string]: Json | undefined;
}

/** JSON text in which a bigint is an integer with all its digits. */
export const jsonText = (value: Json): string =>
  JSON.stringify(value, (_, member: unknown) => (typeof member === "bigint" ? rawJSON(String(member)) : member));

// In ECMAScript since 2025; TypeScript's library does not know it yet.
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };
