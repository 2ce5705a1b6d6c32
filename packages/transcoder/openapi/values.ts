/** The JSON Schema of single values, as the transcoder reads and writes them. */
import { type DescEnum, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { enumNames } from "../contract/enums.ts";
import { type Range, rangeOf } from "../validation/range.ts";
import type { JsonObject } from "./json.ts";

/** Formats of 64 bits say how far they go: what holds numbers in doubles, as JavaScript does, would round the limits. */
function integer({ min, max }: Range<bigint>): JsonObject {
  const sign = min === 0n ? "u" : "";
  return max < 2n ** 32n
    ? { type: "integer", format: `${sign}int32`, minimum: min, maximum: max }
    : { type: "integer", format: `${sign}int64`, minimum: min === 0n ? min : undefined };
}

/** What JSON has no number for is a string, as in proto3 JSON. */
const floating = (format: string): JsonObject => ({
  anyOf: [{ type: "number", format }, { enum: ["NaN", "Infinity", "-Infinity"] }],
});

const others: Partial<Record<ScalarType, JsonObject>> = {
  [ScalarType.BOOL]: { type: "boolean" },
  [ScalarType.STRING]: { type: "string" },
  [ScalarType.BYTES]: { type: "string", contentEncoding: "base64" },
  [ScalarType.DOUBLE]: floating("double"),
  [ScalarType.FLOAT]: floating("float"),
};

export function scalarSchema(type: ScalarType): JsonObject {
  const range = rangeOf(type);
  return range ? integer(range) : (others[type] as JsonObject);
}

/** In a parameter, where base64 is read as well. */
export const addressBytes: JsonObject = { type: "string", contentEncoding: "base64url" };

export const enumSchema = (desc: DescEnum): JsonObject => ({
  type: "string",
  enum: enumNames(desc).map(([name]) => name),
});

const YEAR = "(\\d{3}[1-9]|\\d{2}[1-9]\\d|\\d[1-9]\\d{2}|[1-9]\\d{3})";
const DAY = "((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|[12]\\d))";
const OFFSET = "([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)";

/** RFC 3339 in the years 0001 to 9999, with up to nine digits of a second and without leap seconds. */
export const timestampSchema: JsonObject = {
  type: "string",
  format: "date-time",
  pattern: `^${YEAR}-${DAY}[Tt]([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?${OFFSET}$`,
};

export const isTimestamp = (desc: DescMessage): boolean => desc.typeName === TimestampSchema.typeName;

/** Null beside the values of a schema. */
export const nullable = (schema: JsonObject): JsonObject =>
  typeof schema.type === "string" && schema.enum === undefined && schema.const === undefined
    ? { ...schema, type: [schema.type, "null"] }
    : { anyOf: [schema, { type: "null" }] };
