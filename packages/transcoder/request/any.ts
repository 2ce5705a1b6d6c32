/** Types that the JSON itself says more of: google.protobuf.Any, and Struct, Value and ListValue, which are any JSON as data. */
import {
  create,
  type DescMessage,
  fromJson,
  type Message,
  type JsonValue as PlainJson,
  type Registry,
} from "@bufbuild/protobuf";
import {
  type Any,
  AnySchema,
  anyPack,
  hasCustomJsonRepresentation,
  ListValueSchema,
  StructSchema,
  ValueSchema,
} from "@bufbuild/protobuf/wkt";
import { MOST_NESTED } from "../contract/codec.ts";
import { excerpt } from "../errors/http-error.ts";
import { SchemaError, tooDeep, under } from "../errors/violations.ts";
import { JsonNumber, type JsonObject, type JsonValue } from "./json.ts";

const TYPE = "@type";

/**
 * Reads an Any: a message of the type that "@type" names, made of the members beside it, or of the member "value" where that type
 * has a form of its own in JSON.
 *
 * @throws SchemaError also for a type that is not in the registry
 */
export function anyFromJson(
  json: JsonObject,
  registry: Registry,
  readMessage: (desc: DescMessage, value: JsonValue) => Message,
): Any {
  const any = create(AnySchema);
  if (json.size === 0) return any;
  const typeUrl = json.get(TYPE);
  const desc = under(TYPE, () => typeNamed(typeUrl, registry));
  const members = new Map([...json].filter(([name]) => name !== TYPE));
  const message = hasCustomJsonRepresentation(desc)
    ? readValue(members, (value) => readMessage(desc, value))
    : readMessage(desc, members);
  try {
    anyPack(desc, message, any);
  } catch {
    throw new SchemaError(`lacks a required field of ${desc.typeName}`);
  }
  any.typeUrl = typeUrl as string;
  return any;
}

function typeNamed(typeUrl: JsonValue | undefined, registry: Registry): DescMessage {
  if (typeof typeUrl !== "string")
    throw new SchemaError("must name a type, such as type.googleapis.com/google.rpc.Status");
  const desc = registry.getMessage(typeUrl.slice(typeUrl.lastIndexOf("/") + 1));
  if (!desc) throw new SchemaError(`names a type that is not known here: ${excerpt(typeUrl)}`);
  return desc;
}

function readValue(members: JsonObject, read: (value: JsonValue) => Message): Message {
  const other = [...members.keys()].find((name) => name !== "value");
  if (other !== undefined) throw new SchemaError("is not known here", "UNKNOWN_FIELD").under(excerpt(other));
  const value = members.get("value");
  if (value === undefined) throw new SchemaError("is required").under("value");
  return under("value", () => read(value));
}

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
