/** google.protobuf.Struct, Value and ListValue: any JSON as data. */
import { type DescMessage, fromJson, type Message, type JsonValue as PlainJson } from "@bufbuild/protobuf";
import { ListValueSchema, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { MOST_NESTED } from "../contract/codec.ts";
import { excerpt } from "../validation/excerpt.ts";
import { JsonNumber, type JsonValue } from "./json.ts";
import { SchemaError, tooDeep, under } from "./schema-error.ts";

const TYPES: readonly string[] = [StructSchema, ValueSchema, ListValueSchema].map(({ typeName }) => typeName);

/** Whether a message stands for any JSON, any object or any array. */
export const isDynamic = ({ typeName }: DescMessage): boolean => TYPES.includes(typeName);

/** `depth` counts the messages that hold this one, and itself. @throws SchemaError */
export function dynamicFromJson(desc: DescMessage, value: JsonValue, depth: number): Message {
  if (desc.typeName === StructSchema.typeName && !(value instanceof Map)) throw new SchemaError("must be an object");
  if (desc.typeName === ListValueSchema.typeName && !Array.isArray(value)) throw new SchemaError("must be an array");
  const json = plain(value, desc.typeName === ValueSchema.typeName ? depth : depth - 1);
  return fromJson(desc, json, { recursionLimit: MOST_NESTED });
}

/** As protobuf-es holds the field of a Struct; `depth` as above. @throws SchemaError */
export function structFromJson(value: JsonValue, depth: number): PlainJson {
  if (!(value instanceof Map)) throw new SchemaError("must be an object");
  return plain(value, depth - 1);
}

/**
 * As JSON.parse would read it, but a number that is too large for a double is an error. `depth` is that of the Value: an array
 * is a ListValue within it, whose items are Values within that.
 */
function plain(value: JsonValue, depth: number): PlainJson {
  if (depth >= MOST_NESTED && (depth > MOST_NESTED || value instanceof Map || Array.isArray(value))) throw tooDeep();
  if (value instanceof JsonNumber) {
    const number = Number(value.text);
    if (!Number.isFinite(number)) throw new SchemaError("must have no number beyond those of 64 bits (IEEE 754)");
    return number;
  }
  if (value instanceof Map)
    // fromEntries makes "__proto__" a key like any other.
    return Object.fromEntries(
      [...value].map(([name, member]) => [name, under(excerpt(name), () => plain(member, depth + 2))]),
    );
  return Array.isArray(value)
    ? value.map((item, i) => under(`[${i}]`, () => plain(item, depth + 2)))
    : (value as null | boolean | string);
}
