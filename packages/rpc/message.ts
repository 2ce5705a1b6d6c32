import { create, type DescMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";

/** Returns a message as it is, and turns an object with a message's fields into the message. */
export const messageOf = (desc: DescMessage, init: MessageInitShape<DescMessage>): Message =>
  "$typeName" in init ? (init as Message) : create(desc, init);
