/** How well-known types are written that have a form of their own in JSON: Any, texts such as those of Timestamp, and any JSON. */
import { type DescMessage, type JsonObject, type Message, type Registry, toJson } from "@bufbuild/protobuf";
import { type Any, anyUnpack, hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { isDynamic, textOf } from "../contract/well-known.ts";

/**
 * Compiles the writer of an Any: its type, and the members of the message within, whose writer `writerOf` gives. It throws for a
 * type that is not in the registry, and for bytes that are no such message.
 */
export function anyWriter(registry: () => Registry, writerOf: (desc: DescMessage) => (message: Message) => string) {
  return (any: Any): string => {
    if (any.typeUrl === "") return "{}";
    const message = anyUnpack(any, registry());
    const desc = message && registry().getMessage(message.$typeName);
    if (!desc) throw new Error(`the type of an Any is not known here: ${any.typeUrl}`);
    const type = `"@type":${JSON.stringify(any.typeUrl)}`;
    const text = writerOf(desc)(message);
    if (hasCustomJsonRepresentation(desc)) return `{${type},"value":${text}}`;
    return text === "{}" ? `{${type}}` : `{${type},${text.slice(1)}`;
  };
}

/**
 * The writer of a message of such a type, but of wrappers and Any; undefined for other types. It throws for what JSON can't
 * tell, such as a Timestamp of the year 10,000 and NaN in a Struct.
 */
export function wellKnownWriter(desc: DescMessage): ((message: never) => string) | undefined {
  if (isDynamic(desc)) return (message: Message) => JSON.stringify(toJson(desc, message));
  const format = textOf(desc);
  return format && ((message) => JSON.stringify(format(message)));
}

/** A Struct as protobuf-es holds it in a field. @throws RangeError for a number that JSON has not */
export const structText = (object: JsonObject): string => JSON.stringify(object, finite);

function finite(_name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value))
    throw new RangeError(`a Struct can't have ${value} in JSON`);
  return value;
}
