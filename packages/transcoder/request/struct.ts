/** google.protobuf.Struct, Value and ListValue: any JSON as data. */
import { type DescMessage, fromJson, type Message, type JsonValue as PlainJson } from "@bufbuild/protobuf";
import { ListValueSchema, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { JsonNumber, type JsonValue } from "./json.ts";
import { SchemaError, under } from "./schema-error.ts";

const TYPES: readonly string[] = [StructSchema, ValueSchema, ListValueSchema].map(({ typeName }) => typeName);

/**
 * How deep arrays and objects may be nested. Each is two messages, and readers of protobuf take a hundred within one another, some
 * of which hold the value itself.
 */
const DEEPEST = 40;

/** Whether a message stands for any JSON, any object or any array. */
export const isDynamic = ({ typeName }: DescMessage): boolean => TYPES.includes(typeName);

/** @throws SchemaError */
export function dynamicFromJson(desc: DescMessage, value: JsonValue): Message {
  if (desc.typeName === StructSchema.typeName && !(value instanceof Map)) throw new SchemaError("must be an object");
  if (desc.typeName === ListValueSchema.typeName && !Array.isArray(value)) throw new SchemaError("must be an array");
  return fromJson(desc, plain(value), { recursionLimit: 2 * DEEPEST + 2 });
}

/** As protobuf-es holds the field of a Struct. @throws SchemaError */
export function structFromJson(value: JsonValue): PlainJson {
  if (!(value instanceof Map)) throw new SchemaError("must be an object");
  return plain(value);
}

/** As JSON.parse would read it, but a number that is too large for a double is an error. */
function plain(value: JsonValue, depth = 1): PlainJson {
  if (value instanceof JsonNumber) {
    const number = Number(value.text);
    if (!Number.isFinite(number)) throw new SchemaError("must have no number beyond those of 64 bits (IEEE 754)");
    return number;
  }
  if (depth > DEEPEST && (value instanceof Map || Array.isArray(value)))
    throw new SchemaError(`must not be nested deeper than ${DEEPEST}`);
  if (value instanceof Map)
    // fromEntries makes "__proto__" a key like any other.
    return Object.fromEntries([...value].map(([name, member]) => [name, under(name, () => plain(member, depth + 1))]));
  return Array.isArray(value)
    ? value.map((item, i) => under(`[${i}]`, () => plain(item, depth + 1)))
    : (value as null | boolean | string);
}
