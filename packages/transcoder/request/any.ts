/** google.protobuf.Any: a message of a type that the JSON names. */
import { create, type DescMessage, type Message, type Registry } from "@bufbuild/protobuf";
import { type Any, AnySchema, anyPack, hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { excerpt } from "../validation/excerpt.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import { SchemaError, under } from "./schema-error.ts";

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
