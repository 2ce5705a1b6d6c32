/** Extensions of proto2: fields of a message that another file declares. */
import { type DescExtension, type DescMessage, getExtension, type Message, type Registry } from "@bufbuild/protobuf";

/** Whether other files may add fields to a message. */
export const isExtendable = ({ proto }: DescMessage): boolean => proto.extensionRange.length > 0;

/** The extensions that a message has and the registry knows, with their values. */
export function extensionsIn(desc: DescMessage, message: Message, registry: Registry): [DescExtension, unknown][] {
  const numbers = new Set(message.$unknown?.map(({ no }) => no));
  return [...numbers].flatMap((number): [DescExtension, unknown][] => {
    const extension = registry.getExtensionFor(desc, number);
    return extension ? [[extension, getExtension(message, extension)]] : [];
  });
}
