/** How a document tells of events. OpenAPI 3.1 has no word for the items of a stream; 3.2 has `itemSchema`. */
import type { Stream } from "../contract/stream.ts";
import { eventFormats } from "../response/events.ts";
import type { JsonObject } from "./json.ts";
import type { Schemas } from "./schemas.ts";

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
  const items: Readonly<Record<string, JsonObject>> = {
    "text/event-stream": item({ type: "string", contentMediaType: "application/json", contentSchema: value }),
    "application/x-ndjson": item(value),
  };
  const descriptions: Readonly<Record<string, string>> = {
    "text/event-stream":
      "Server-Sent Events (WHATWG HTML, 9.2): blocks of the lines `id`, `event` and `data`, of which each is one line at " +
      "most. `data` is JSON; `x-itemSchema` is `itemSchema` of OpenAPI 3.2. Comments show that the connection lives; a " +
      "block without `data` brings only an `id`.",
    "application/x-ndjson":
      "The same as lines of JSON: each is an object as in `x-itemSchema`. One without `data` shows that the connection " +
      "lives. Once there is an `id`, each line has the last one.",
  };
  return Object.fromEntries(
    eventFormats.map(({ type }) => [
      type,
      { schema: { type: "string", description: descriptions[type] }, "x-itemSchema": items[type] },
    ]),
  );
}

/** The parameter by which a reader comes back, as the field that it fills describes it. */
export const lastEventId = ({ jsonName }: NonNullable<Stream["resume"]>, field: JsonObject): JsonObject => ({
  ...field,
  description:
    `The \`id\` of the last event that was read: the stream goes on behind it. It wins over \`${jsonName}\`, for a browser's ` +
    "EventSource sends the address that it was opened with each time that it reconnects, and this header beside it.",
});
