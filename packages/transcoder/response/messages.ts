/** The forms of an answer that streams messages as they are: lines of JSON, Server-Sent Events, or one JSON array. */
import { JSON_TYPE, LINES_TYPE } from "../policy/media.ts";
import { oneLine } from "./events.ts";
import type { StreamWriter } from "./stream-writer.ts";

export interface MessageForm {
  readonly type: string;
  /** Writes one answer, of messages as JSON texts. */
  readonly open: () => StreamWriter<string>;
}

/** Each line is a message. That of an error is an object with the one member `error`. */
const linesOfJson: MessageForm = {
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
const serverSentEvents: MessageForm = {
  type: "text/event-stream",
  open: () => ({
    head: "",
    message: (json) => `data: ${oneLine(json)}\n\n`,
    heartbeat: () => ": heartbeat\n\n",
    error: (json) => `event: error\ndata: ${oneLine(json)}\n\n`,
    end: "",
  }),
};

/** An array has no place for an error: it stays open, which no reader takes for the whole. */
const array: MessageForm = {
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

/** The one that is taken where the header Accept has no preference goes first. */
export const messageForms: readonly MessageForm[] = [linesOfJson, serverSentEvents, array];
