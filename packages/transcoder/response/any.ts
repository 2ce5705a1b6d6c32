/** google.protobuf.Any as JSON: the members of the message within, and its type. */
import type { DescMessage, Message, Registry } from "@bufbuild/protobuf";
import { type Any, anyUnpack, hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";

/**
 * Compiles the writer of an Any; `writerOf` gives that of the message within. It throws for a type that is not in the registry,
 * and for bytes that are no such message.
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
