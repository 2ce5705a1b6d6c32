/** google.protobuf.Any as JSON: the members of the message within, and its type. */
import type { DescMessage, Message, Registry } from "@bufbuild/protobuf";
import { type Any, anyUnpack, hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";

/** How deep an Any may be in others. Each is unpacked by itself, so that no limit of the binary form counts them. */
const MAX_DEPTH = 100;

/**
 * Compiles the writer of an Any; `writerOf` gives that of the message within. It throws for a type that is not in the registry,
 * and for bytes that are no such message.
 */
export function anyWriter(registry: () => Registry, writerOf: (desc: DescMessage) => (message: Message) => string) {
  let depth = 0;
  return (any: Any): string => {
    if (any.typeUrl === "") return "{}";
    const message = anyUnpack(any, registry());
    const desc = message && registry().getMessage(message.$typeName);
    if (!desc) throw new Error(`the type of an Any is not known here: ${any.typeUrl}`);
    if (depth === MAX_DEPTH) throw new Error(`an Any is in more than ${MAX_DEPTH} others`);
    depth += 1;
    try {
      const type = `"@type":${JSON.stringify(any.typeUrl)}`;
      const text = writerOf(desc)(message);
      if (hasCustomJsonRepresentation(desc)) return `{${type},"value":${text}}`;
      return text === "{}" ? `{${type}}` : `{${type},${text.slice(1)}`;
    } finally {
      depth -= 1;
    }
  };
}
