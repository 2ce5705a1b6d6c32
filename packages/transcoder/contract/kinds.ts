/** What goes either way: one message, or a stream of them; JSON, or bytes as they are. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { Operation } from "./operation.ts";

/** Whether the answer is a stream of messages. */
export const streamsAnswers = ({ method: { methodKind } }: Pick<Operation, "method">): boolean =>
  methodKind === "server_streaming" || methodKind === "bidi_streaming";

/** Whether the request's body is a stream of messages. Without a body there is one, made of path and query. */
export const streamsRequests = ({ method: { methodKind }, body }: Pick<Operation, "method" | "body">): boolean =>
  (methodKind === "client_streaming" || methodKind === "bidi_streaming") && body !== undefined;

/** Whether a message is one of bytes with their media type, which stand in a body as they are. */
export const isHttpBody = (desc: DescMessage | undefined): boolean => desc?.typeName === "google.api.HttpBody";

const holdsHttpBody = (field: DescField): boolean => field.fieldKind === "message" && isHttpBody(field.message);

/** Whether the request's body is bytes of any type. */
export const takesBytes = ({ method, body }: Pick<Operation, "method" | "body">): boolean =>
  body?.kind === "field" ? holdsHttpBody(body.field) : body !== undefined && isHttpBody(method.input);

/** Whether the answer is bytes, of the type that the service names. */
export const answersBytes = ({ method, response }: Pick<Operation, "method" | "response">): boolean =>
  response ? holdsHttpBody(response) : isHttpBody(method.output);
