import { create, type DescMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";

/** The message that somebody means who gives one, or an object with its fields. */
export const messageOf = (desc: DescMessage, init: MessageInitShape<DescMessage>): Message =>
  "$typeName" in init ? (init as Message) : create(desc, init);
