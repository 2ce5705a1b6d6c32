/** From the responses of a streaming RPC to the text of events: Server-Sent Events, or lines of JSON. */
import { isFieldSet, type Message } from "@bufbuild/protobuf";
import type { Codec } from "../contract/codec.ts";
import type { EventData, Stream } from "../contract/stream.ts";
import { contentOf, fieldWriter, messageWriter } from "./encode.ts";
import type { StreamWriter } from "./stream-writer.ts";
import type { TellUnknown } from "./unknown-values.ts";

/** What one response is written as. An empty string stands for none. */
export interface StreamEvent {
  readonly id: string;
  readonly name: string;
  /** JSON text in one line; undefined of a heartbeat. */
  readonly data: string | undefined;
}

/** How events are written. `lastId` is the last id that there was, from which a reader goes on; empty if there was none. */
export interface EventFormat {
  readonly type: string;
  /** What a stream begins with. */
  readonly head: string;
  readonly event: (event: StreamEvent, lastId: string) => string;
  /** Shows that the connection lives. */
  readonly heartbeat: (lastId: string) => string;
  /** The last of a stream that failed, by the error as JSON text. */
  readonly error: (error: string, lastId: string) => string;
}

/** How long a reader waits before it reconnects, in milliseconds. */
const RETRY_MS = 3000;

const HEARTBEAT = ": heartbeat\n";
const field = (name: string, value: string): string => (value === "" ? "" : `${name}: ${value}\n`);

/** WHATWG HTML, 9.2. A block without data sets the last event id, and no event is dispatched. */
const serverSentEvents: EventFormat = {
  type: "text/event-stream",
  head: `retry: ${RETRY_MS}\n\n`,
  event: ({ id, name, data }) =>
    data === undefined
      ? `${HEARTBEAT}${field("id", id)}\n`
      : `${field("id", id)}${field("event", name)}data: ${data}\n\n`,
  heartbeat: () => `${HEARTBEAT}\n`,
  error: (json) => `event: error\ndata: ${oneLine(json)}\n\n`,
};

const line = (lastId: string, name: string, data: string | undefined): string => {
  const members = [
    ...(lastId === "" ? [] : [`"id":${oneLine(JSON.stringify(lastId))}`]),
    ...(name === "" ? [] : [`"event":${oneLine(JSON.stringify(name))}`]),
    ...(data === undefined ? [] : [`"data":${data}`]),
  ];
  return `{${members.join(",")}}\n`;
};

/** The same in objects, each in a line with the last id: a reader who takes the id of each line never loses it. */
const linesOfJson: EventFormat = {
  type: "application/x-ndjson",
  head: "",
  event: ({ name, data }, lastId) => line(lastId, name, data),
  heartbeat: (lastId) => line(lastId, "", undefined),
  error: (json, lastId) => line(lastId, "error", oneLine(json)),
};

/** The one that is taken where the header Accept has no preference goes first. */
export const eventFormats: readonly EventFormat[] = [serverSentEvents, linesOfJson];

/** Writes one stream of events, which goes on behind the event with this id; the id is empty if it begins now. */
export function eventWriter(format: EventFormat, begin: string): StreamWriter<StreamEvent> {
  let lastId = begin;
  return {
    head: format.head,
    message(event) {
      lastId = event.id || lastId;
      return format.event(event, lastId);
    },
    heartbeat: () => format.heartbeat(lastId),
    error: (json) => format.error(json, lastId),
    end: "",
  };
}

/** Compiles what responses tell. What it throws is the service's fault. */
export function eventReader(
  { id, data }: Stream,
  codec: Codec,
  tellUnknown?: TellUnknown,
): (response: Message) => StreamEvent {
  const readId = (response: Message) => (id ? plain(id.name, contentOf(response, id)) : "");
  const candidates = data.map((one) => ({
    one,
    write: one.field ? fieldWriter(one.field, codec, tellUnknown) : messageWriter(one.message, codec, tellUnknown),
  }));
  return (response) => {
    const found = candidates.find(({ one: { field } }) => !field || isFieldSet(response, field));
    if (!found) return { id: readId(response), name: "", data: undefined };
    const message: Message = found.one.field ? contentOf(response, found.one.field) : response;
    return { id: readId(response), name: nameIn(message, found.one), data: oneLine(found.write(response)) };
  };
}

const nameIn = (data: Message, { event }: EventData): string =>
  event ? plain(event.name, contentOf(data, event)) : "";

/** An id or a name can't be written with a line break in it, and a reader ignores an id with U+0000. */
function plain(name: string, value: string | undefined = ""): string {
  if (/[\0\r\n]/.test(value)) throw new Error(`${name} has a line break or U+0000 in it`);
  return value;
}

/** JSON text has line breaks only between its parts, and ours has none. Some readers also take these for such. */
export const oneLine = (json: string): string =>
  json.replaceAll(/[\u0085\u2028\u2029]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
