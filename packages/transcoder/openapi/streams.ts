/** How a document tells of streams. OpenAPI 3.1 has no word for their items; 3.2 has `itemSchema`. */
import type { Stream } from "../contract/stream.ts";
import { EVENTS_TYPE, JSON_TYPE, LINES_TYPE } from "../policy/media.ts";
import { eventFormats, messageFormats, type StreamFormat } from "../response/events.ts";
import type { JsonObject } from "./json.ts";
import type { Schemas } from "./schemas.ts";

/** What a document tells of each format that answers have, in their order: the first is taken where Accept has no preference. */
const contentsOf = (formats: readonly StreamFormat<never>[], told: Readonly<Record<string, JsonObject>>): JsonObject =>
  Object.fromEntries(formats.map(({ type }) => [type, told[type]]));

const itemsOf = (description: string, item: JsonObject): JsonObject => ({
  schema: { type: "string", description },
  "x-itemSchema": item,
});

const jsonData = (schema: JsonObject): JsonObject => ({
  type: "string",
  contentMediaType: "application/json",
  contentSchema: schema,
});

/** The content of an answer that streams, by media type. `error` is the schema of what ends it, where that is known. */
export function eventContent({ id, data }: Stream, schemas: Schemas, error: JsonObject | undefined): JsonObject {
  const kinds = data.map(({ message }) => schemas.message(message, "output"));
  const hasEvent = data.some(({ event }) => event);
  const value: JsonObject = { anyOf: error ? [...kinds, error] : kinds };
  const item = (dataSchema: JsonObject): JsonObject => ({
    type: "object",
    properties: {
      id: id && { type: "string", description: "Where to go on behind this event. Without it, behind the one before." },
      event: {
        type: "string",
        description: `${hasEvent ? "What happened" : "Absent"}; \`error\` when the stream failed, which ends it.`,
      },
      data: dataSchema,
    },
  });
  return contentsOf(eventFormats, {
    [EVENTS_TYPE]: itemsOf(
      "Server-Sent Events (WHATWG HTML, 9.2): blocks of the lines `id`, `event` and `data`, of which each is one line at " +
        "most. `data` is JSON; `x-itemSchema` is `itemSchema` of OpenAPI 3.2. Comments show that the connection lives; a " +
        "block without `data` brings only an `id`.",
      item(jsonData(value)),
    ),
    [LINES_TYPE]: itemsOf(
      "The same as lines of JSON: each is an object as in `x-itemSchema`. One without `data` shows that the connection " +
        "lives. Once there is an `id`, each line has the last one.",
      item(value),
    ),
  });
}

/** The parameter by which a reader comes back, as the field that it fills describes it. */
export const lastEventId = ({ jsonName }: NonNullable<Stream["resume"]>, field: JsonObject): JsonObject => ({
  ...field,
  description:
    `The \`id\` of the last event that was read: the stream goes on behind it. It wins over \`${jsonName}\`, for a browser's ` +
    "EventSource sends the address that it was opened with each time that it reconnects, and this header beside it.",
});

const arrayOf = (description: string, items: JsonObject): JsonObject => ({
  schema: { type: "array", description, items },
});

/** The content of an answer that streams messages, by media type. `error` is the schema of what ends it, where that is known. */
export const messageContent = (message: JsonObject, error: JsonObject = {}): JsonObject =>
  contentsOf(messageFormats, {
    [LINES_TYPE]: itemsOf(
      "Lines of JSON. Each is a message; when the stream fails, the last one is an object with the member `error`, and " +
        "the connection does not end in good order. `x-itemSchema` is `itemSchema` of OpenAPI 3.2.",
      { anyOf: [message, { type: "object", properties: { error }, required: ["error"] }] },
    ),
    [EVENTS_TYPE]: itemsOf(
      "Server-Sent Events (WHATWG HTML, 9.2). The `data` of each is a message in one line; when the stream fails, the " +
        "last one is called `error`, and the connection does not end in good order.",
      {
        type: "object",
        properties: {
          event: { type: "string", const: "error", description: "Absent but on an error, which ends the stream." },
          data: jsonData({ anyOf: [message, error] }),
        },
        required: ["data"],
      },
    ),
    [JSON_TYPE]: arrayOf("All messages. When the stream fails, the array does not end.", message),
  });

/** The content of a body that is a stream of such messages, by media type. */
export const requestContent = (message: JsonObject): JsonObject => ({
  [LINES_TYPE]: itemsOf(
    "Lines of JSON, of which each is a message. `x-itemSchema` is `itemSchema` of OpenAPI 3.2.",
    message,
  ),
  [JSON_TYPE]: arrayOf("All messages.", message),
});
