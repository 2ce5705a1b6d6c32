/** How a document tells of messages that come one after the other. OpenAPI 3.1 has no word for them; 3.2 has `itemSchema`. */
import { JSON_TYPE, LINES_TYPE } from "../policy/media.ts";
import { messageForms } from "../response/messages.ts";
import type { JsonObject } from "./json.ts";

/** The content of an answer that streams messages, by media type. `error` is the schema of what ends it, where that is known. */
export function messageContent(message: JsonObject, error: JsonObject = {}): JsonObject {
  const contents: Readonly<Record<string, JsonObject>> = {
    "application/x-ndjson": {
      schema: {
        type: "string",
        description:
          "Lines of JSON. Each is a message; when the stream fails, the last one is an object with the member `error`, and " +
          "the connection does not end in good order. `x-itemSchema` is `itemSchema` of OpenAPI 3.2.",
      },
      "x-itemSchema": {
        anyOf: [message, { type: "object", properties: { error }, required: ["error"] }],
      },
    },
    "text/event-stream": {
      schema: {
        type: "string",
        description:
          "Server-Sent Events (WHATWG HTML, 9.2). The `data` of each is a message in one line; when the stream fails, the " +
          "last one is called `error`, and the connection does not end in good order.",
      },
      "x-itemSchema": {
        type: "object",
        properties: {
          event: { type: "string", const: "error", description: "Absent but on an error, which ends the stream." },
          data: {
            type: "string",
            contentMediaType: "application/json",
            contentSchema: { anyOf: [message, error] },
          },
        },
        required: ["data"],
      },
    },
    "application/json": {
      schema: {
        type: "array",
        description: "All messages. When the stream fails, the array does not end.",
        items: message,
      },
    },
  };
  return Object.fromEntries(messageForms.map(({ type }) => [type, contents[type]]));
}

/** The content of a body that is a stream of such messages, by media type. */
export const requestContent = (message: JsonObject): JsonObject => ({
  [LINES_TYPE]: {
    schema: {
      type: "string",
      description: "Lines of JSON, of which each is a message. `x-itemSchema` is `itemSchema` of OpenAPI 3.2.",
    },
    "x-itemSchema": message,
  },
  [JSON_TYPE]: { schema: { type: "array", description: "All messages.", items: message } },
});
