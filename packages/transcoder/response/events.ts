/** How answers are written whose messages come one after the other: as events, by the option `stream`, or as they are. */
import { isFieldSet, type Message } from "@bufbuild/protobuf";
import type { Codec } from "../contract/codec.ts";
import type { EventData, Stream } from "../contract/stream.ts";
import { EVENTS_TYPE, JSON_TYPE, LINES_TYPE } from "../policy/media.ts";
import { contentOf, fieldWriter, messageWriter } from "./encode.ts";
import type { TellUnknown } from "./scalars.ts";

export interface StreamWriter<M> {
  /** What the answer begins with. */
  readonly head: string;
  readonly message: (message: M) => string | Uint8Array;
  /** Shows that the connection lives. Empty in a form that has nothing for that. */
  readonly heartbeat: () => string;
  /** The last of an answer that failed, by the error as JSON text. Empty in a form that has nothing for that. */
  readonly error: (json: string) => string;
  /** What ends an answer that is whole. */
  readonly end: string;
}

export interface StreamFormat<M> {
  readonly type: string;
  /** Events go on behind the one with this id, which is empty if they begin now. */
  readonly open: (lastId: string) => StreamWriter<M>;
}

/** JSON text has line breaks only between its parts, and ours has none. Some readers also take these for such. */
const oneLine = (json: string): string =>
  json.replaceAll(/[\u0085\u2028\u2029]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** What one response is written as. An empty string stands for none. */
export interface StreamEvent {
  readonly id: string;
  readonly name: string;
  /** JSON text in one line; undefined of a heartbeat. */
  readonly data: string | undefined;
}

/** How long a reader waits before it reconnects, in milliseconds. */
const RETRY_MS = 3000;

const HEARTBEAT = ": heartbeat\n";
const field = (name: string, value: string): string => (value === "" ? "" : `${name}: ${value}\n`);

/** What the events of the option `stream` and those of messages as they are have in common. */
const OF_ALL_EVENTS: Pick<StreamWriter<never>, "heartbeat" | "error" | "end"> = {
  heartbeat: () => `${HEARTBEAT}\n`,
  error: (json) => `event: error\ndata: ${oneLine(json)}\n\n`,
  end: "",
};

/** WHATWG HTML, 9.2. A block without data sets the last event id, and no event is dispatched. */
const serverSentEvents: StreamFormat<StreamEvent> = {
  type: EVENTS_TYPE,
  open: () => ({
    head: `retry: ${RETRY_MS}\n\n`,
    message: ({ id, name, data }) =>
      data === undefined
        ? `${HEARTBEAT}${field("id", id)}\n`
        : `${field("id", id)}${field("event", name)}data: ${data}\n\n`,
    ...OF_ALL_EVENTS,
  }),
};

/** The same in objects, each in a line with the last id: a reader who takes the id of each line never loses it. */
const linesOfEvents: StreamFormat<StreamEvent> = {
  type: LINES_TYPE,
  open(begin) {
    let lastId = begin;
    const line = (name: string, data: string | undefined): string => {
      const members = [
        ...(lastId === "" ? [] : [`"id":${oneLine(JSON.stringify(lastId))}`]),
        ...(name === "" ? [] : [`"event":${oneLine(JSON.stringify(name))}`]),
        ...(data === undefined ? [] : [`"data":${data}`]),
      ];
      return `{${members.join(",")}}\n`;
    };
    return {
      head: "",
      message({ id, name, data }) {
        lastId = id || lastId;
        return line(name, data);
      },
      heartbeat: () => line("", undefined),
      error: (json) => line("error", oneLine(json)),
      end: "",
    };
  },
};

/** The one that is taken where the header Accept has no preference goes first. */
export const eventFormats: readonly StreamFormat<StreamEvent>[] = [serverSentEvents, linesOfEvents];

/** Compiles what responses tell. What it throws is the service's fault. */
export function eventReader({ id, data }: Stream, codec: Codec, tellUnknown?: TellUnknown) {
  const readId = (response: Message) => (id ? plain(id.name, contentOf(response, id)) : "");
  const candidates = data.map((one) => ({
    one,
    write: one.field ? fieldWriter(one.field, codec, tellUnknown) : messageWriter(one.message, codec, tellUnknown),
  }));
  return (response: Message): StreamEvent => {
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

/** Each line is a message, as JSON text. That of an error is an object with the one member `error`. */
const linesOfMessages: StreamFormat<string> = {
  type: LINES_TYPE,
  open: () => ({
    head: "",
    message: (json) => `${oneLine(json)}\n`,
    heartbeat: () => "",
    error: (json) => `{"error":${oneLine(json)}}\n`,
    end: "",
  }),
};

/** Each message is the data of an event. */
const eventsOfMessages: StreamFormat<string> = {
  type: EVENTS_TYPE,
  open: () => ({
    head: "",
    message: (json) => `data: ${oneLine(json)}\n\n`,
    ...OF_ALL_EVENTS,
  }),
};

/** An array has no place for an error: it stays open, which no reader takes for the whole. */
const arrayOfMessages: StreamFormat<string> = {
  type: JSON_TYPE,
  open() {
    let separator = "";
    return {
      head: "[",
      message(json) {
        const text = separator + json;
        separator = ",";
        return text;
      },
      heartbeat: () => "\n",
      error: () => "",
      end: "]",
    };
  },
};

/** As `eventFormats`, of messages as JSON texts. */
export const messageFormats: readonly StreamFormat<string>[] = [linesOfMessages, eventsOfMessages, arrayOfMessages];
