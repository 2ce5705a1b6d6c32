/** The text of events, as parsers of others read it. */
import { create, type Message } from "@bufbuild/protobuf";
import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EXACT } from "../contract/codec.ts";
import { operationsOf } from "../contract/operations.ts";
import type { Stream } from "../contract/stream.ts";
import { compileNews, compileProtos, serviceOf } from "../fixtures/compile.ts";
import { eventFormats, eventReader } from "./events.ts";

const [serverSentEvents, linesOfJson] = eventFormats as [(typeof eventFormats)[0], (typeof eventFormats)[0]];
const service = serviceOf(compileNews(), "foreign.news.v1.NewsService");
const [watch] = operationsOf(service);
const read = eventReader(watch?.stream as Stream, EXACT);
const gone = (message: string) => JSON.stringify({ code: "A", message, status: 410 });
const tell = (init: object) => read(create(watch?.method.output as never, init as never) as Message);

/** All kinds of characters that end a line somewhere, or mean something in an event. */
const awkward = fc.string({
  unit: fc.constantFrom(..."\r\n\v\f\u001c\u001e\u0085\u2028\u2029\ufeff\0:,{}\"'\\ a\u00e9\u{1f415}", "data: ", "id:"),
});
const texts = fc.oneof(
  awkward,
  fc.string({ unit: "binary" }).filter((text) => text.isWellFormed()),
);
const plainTexts = texts.map((text) => text.replaceAll(/[\0\r\n]/g, "")).filter((text) => text !== "");

/** Three texts each: id, name, data. */
const told = fc.array(fc.tuple(plainTexts, plainTexts, texts), { maxLength: 3 }).map((all) => ({
  all,
  events: all.map(([place, type, to]) => tell({ place, news: { case: "lent", value: { type, to } } })),
}));

/** As a browser reads it, in pieces. */
function readEvents(pieces: readonly Uint8Array[]) {
  const events: { id: string | undefined; event: string | undefined; data: string }[] = [];
  const ids: string[] = [];
  const others: string[] = [];
  const parser = createParser({
    onEvent: ({ id, event, data }) => void events.push({ id, event, data }),
    onId: (id) => void ids.push(id),
    onError: ({ message }) => void others.push(message),
  });
  const decoder = new TextDecoder();
  for (const piece of pieces) parser.feed(decoder.decode(piece, { stream: true }));
  return { events, ids, others };
}

const bytewise = (text: string): Uint8Array[] => [...Buffer.from(text)].map((byte) => Uint8Array.of(byte));

describe("server-sent events", () => {
  test("say what the responses said, whatever is in them, in whatever pieces they arrive", () => {
    fc.assert(
      fc.property(told, ({ all, events }) => {
        const text =
          serverSentEvents.open("").head +
          events.map((event) => serverSentEvents.open(event.id).message(event)).join("");
        for (const pieces of [bytewise(text), [Buffer.from(text)]]) {
          const read = readEvents(pieces);
          expect(read.others).toEqual([]);
          expect(read.events.map(({ id, event, data }) => [id, event, JSON.parse(data).to])).toEqual(all);
        }
      }),
    );
  });

  test("as they are written", () => {
    const lent = tell({
      place: "p1",
      news: { case: "lent", value: { type: "books.lent", isbn: 2n ** 60n, to: "Ann" } },
    });
    expect(serverSentEvents.open("p1").message(lent)).toBe(
      'id: p1\nevent: books.lent\ndata: {"type":"books.lent","isbn":1152921504606846976,"to":"Ann"}\n\n',
    );
    expect(serverSentEvents.open("").head).toBe("retry: 3000\n\n");
    expect(serverSentEvents.open("p1").heartbeat()).toBe(": heartbeat\n\n");
    expect(serverSentEvents.open("p1").error(gone("b\nc"))).toBe(
      'event: error\ndata: {"code":"A","message":"b\\nc","status":410}\n\n',
    );
  });

  test("a response without data is a comment with its id, which no reader is told of as an event", () => {
    const heartbeat = serverSentEvents.open("p2").message(tell({ place: "p2", alive: true }));
    expect(heartbeat).toBe(": heartbeat\nid: p2\n\n");
    expect(readEvents([Buffer.from(heartbeat)])).toEqual({ events: [], ids: ["p2"], others: [] });
    expect(serverSentEvents.open("p2").message(tell({ alive: true }))).toBe(serverSentEvents.open("p2").heartbeat());
  });

  test("an id that may be left out, and is, says nothing", () => {
    const registry = compileProtos({
      "ticks.proto": `syntax = "proto3";
        package ticks.v1;
        import "google/api/annotations.proto";
        import "transcoder/v1/annotations.proto";
        message WatchRequest {}
        message Tick { optional string place = 1; int32 number = 2; }
        service Ticks {
          rpc Watch(WatchRequest) returns (stream Tick) {
            option (google.api.http) = {get: "/ticks"};
            option (transcoder.v1.stream) = {id: "place" event: "place"};
          }
        }`,
    });
    const [operation] = operationsOf(serviceOf(registry, "ticks.v1.Ticks"));
    const told = eventReader(
      operation?.stream as Stream,
      EXACT,
    )(create(operation?.method.output as never, { number: 7 } as never));
    expect(serverSentEvents.open("").message(told)).toBe('data: {"number":7}\n\n');
    expect(linesOfJson.open("").message(told)).toBe('{"data":{"number":7}}\n');
  });
});

/** Where some reader or other begins a new line: Python's str.splitlines knows most. */
const LINE_BREAKS = [..."\n\r\v\f\u001c\u001d\u001e\u0085\u2028\u2029"];

describe("lines of JSON", () => {
  test("say the same, each in what every reader takes for one line", () => {
    fc.assert(
      fc.property(told, ({ all, events }) => {
        const text = events.map((event) => String(linesOfJson.open(event.id).message(event)));
        for (const line of text) expect(LINE_BREAKS.filter((sign) => line.slice(0, -1).includes(sign))).toEqual([]);
        const lines = text.map((line) => JSON.parse(line));
        expect(lines.map(({ id, event, data }) => [id, event, data.to])).toEqual(all);
      }),
    );
  });

  test("as they are written", () => {
    const returned = tell({ place: "p1", news: { case: "returned", value: { type: "back", isbn: 5n } } });
    expect(linesOfJson.open("p1").message(returned)).toBe(
      '{"id":"p1","event":"back","data":{"type":"back","isbn":5}}\n',
    );
    expect(linesOfJson.open("p2").message(tell({ place: "p2" }))).toBe('{"id":"p2"}\n');
    expect(linesOfJson.open("p1").heartbeat()).toBe('{"id":"p1"}\n');
    expect(linesOfJson.open("").heartbeat()).toBe("{}\n");
    expect(linesOfJson.open("p1").error(gone("b\u2028"))).toBe(
      '{"id":"p1","event":"error","data":{"code":"A","message":"b\\u2028","status":410}}\n',
    );
  });
});

test.each(["a\nb", "a\rb", "a\0b"])("an id or a name that can't be written is no event: %j", (text) => {
  const said = (place: string, type: string) => () => tell({ place, news: { case: "lent", value: { type } } });
  expect(said(text, "a")).toThrow(/place has a line break/);
  expect(said("a", text)).toThrow(/type has a line break/);
});
