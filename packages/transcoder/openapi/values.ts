/** The JSON Schema of single values, as the transcoder reads and writes them. */
import { type DescEnum, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { enumNames } from "../contract/enums.ts";
import type { JsonObject } from "./json.ts";

const integer = (format: string, minimum?: bigint, maximum?: bigint): JsonObject => ({
  type: "integer",
  format,
  minimum,
  maximum,
});
const int32 = integer("int32", -(2n ** 31n), 2n ** 31n - 1n);
const uint32 = integer("uint32", 0n, 2n ** 32n - 1n);
// Their formats say how far they go: what holds numbers in doubles, as JavaScript does, would round the limits.
const int64 = integer("int64");
const uint64 = integer("uint64", 0n);

/** What JSON has no number for is a string, as in proto3 JSON. */
const floating = (format: string): JsonObject => ({
  anyOf: [{ type: "number", format }, { enum: ["NaN", "Infinity", "-Infinity"] }],
});

const scalars: Readonly<Record<ScalarType, JsonObject>> = {
  [ScalarType.INT32]: int32,
  [ScalarType.SINT32]: int32,
  [ScalarType.SFIXED32]: int32,
  [ScalarType.UINT32]: uint32,
  [ScalarType.FIXED32]: uint32,
  [ScalarType.INT64]: int64,
  [ScalarType.SINT64]: int64,
  [ScalarType.SFIXED64]: int64,
  [ScalarType.UINT64]: uint64,
  [ScalarType.FIXED64]: uint64,
  [ScalarType.BOOL]: { type: "boolean" },
  [ScalarType.STRING]: { type: "string" },
  [ScalarType.BYTES]: { type: "string", contentEncoding: "base64" },
  [ScalarType.DOUBLE]: floating("double"),
  [ScalarType.FLOAT]: floating("float"),
};

export const scalarSchema = (type: ScalarType): JsonObject => scalars[type];

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
