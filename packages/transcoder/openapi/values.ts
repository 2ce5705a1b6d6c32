/** The JSON Schema of single values, as the transcoder reads and writes them. */
import { type DescEnum, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { type Codec, enumNames, NULL_VALUE } from "../contract/codec.ts";
import { isLong } from "../response/scalars.ts";
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

export function scalarSchema(type: ScalarType, { writesLongsAsText }: Codec): JsonObject {
  const range = rangeOf(type);
  if (range && writesLongsAsText && isLong(type))
    return { type: "string", format: range.min === 0n ? "uint64" : "int64" };
  return range ? integer(range) : (others[type] as JsonObject);
}

/** In a parameter, where base64 is read as well. */
export const addressBytes: JsonObject = { type: "string", contentEncoding: "base64url" };

/** The values of an enum as the codec writes them: names, or numbers. */
export function enumSchema(desc: DescEnum, codec: Codec): JsonObject {
  if (desc.typeName === NULL_VALUE) return { type: "null" };
  if (codec.enumNumbers) return { type: "integer", enum: [...new Set(desc.values.map(({ number }) => number))] };
  return { type: "string", enum: valueNames(desc, codec).map(([name]) => name) };
}

/** The names that a value has in the document, with its number. */
export const valueNames = (desc: DescEnum, { hasFullEnumNames }: Codec): [string, number][] =>
  hasFullEnumNames ? desc.values.map(({ jsonName, number }) => [jsonName, number]) : enumNames(desc);

const YEAR = "(\\d{3}[1-9]|\\d{2}[1-9]\\d|\\d[1-9]\\d{2}|[1-9]\\d{3})";
const DAY = "((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|[12]\\d))";
const OFFSET = "([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)";

/** RFC 3339 in the years 0001 to 9999, with up to nine digits of a second and without leap seconds. */
export const timestampSchema: JsonObject = {
  type: "string",
  format: "date-time",
  pattern: `^${YEAR}-${DAY}[Tt]([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?${OFFSET}$`,
};

const WELL_KNOWN: ReadonlyMap<string, JsonObject> = new Map(
  Object.entries<JsonObject>({
    "google.protobuf.Timestamp": timestampSchema,
    "google.protobuf.Duration": { type: "string", pattern: "^-?\\d{1,12}(\\.\\d{1,9})?s$" },
    "google.protobuf.FieldMask": { type: "string" },
    "google.protobuf.Struct": { type: "object", additionalProperties: true },
    "google.protobuf.Value": { description: "Any JSON." },
    "google.protobuf.ListValue": { type: "array", items: {} },
    "google.protobuf.Any": {
      type: "object",
      properties: { "@type": { type: "string", description: "Of what type the other members are." } },
      additionalProperties: true,
    },
  }),
);

/** The schema of a message that has a form of its own in JSON; undefined of one that is an object with its members. */
export const wellKnownSchema = (desc: DescMessage, codec: Codec): JsonObject | undefined =>
  isWrapperDesc(desc) ? scalarSchema(desc.fields[0].scalar, codec) : WELL_KNOWN.get(desc.typeName);

/** Rules of an integer that is written as a string. Of limits no keyword says so. */
export function inText(rules: JsonObject): JsonObject {
  const { minimum, maximum, const: one, enum: some, not, description, ...others } = rules;
  const least = minimum === undefined ? "" : `At least ${minimum}.`;
  const most = maximum === undefined ? "" : `At most ${maximum}.`;
  const words = [description, least, most].filter(Boolean).join(" ");
  return {
    ...(words !== "" && { description: words }),
    ...(one !== undefined && { const: `${one}` }),
    ...(Array.isArray(some) && { enum: some.map(String) }),
    ...(not !== undefined && { not: inText(not as JsonObject) }),
    ...others,
  };
}

/** Null beside the values of a schema. */
export const nullable = (schema: JsonObject): JsonObject =>
  schema.type === "null"
    ? schema
    : typeof schema.type === "string" && schema.enum === undefined && schema.const === undefined
      ? { ...schema, type: [schema.type, "null"] }
      : { anyOf: [schema, { type: "null" }] };
