import { EventEmitter } from "node:events";
import { setImmediate as tick } from "node:timers/promises";
import { create, fromBinary, type Message } from "@bufbuild/protobuf";
import { type StringValue, StringValueSchema } from "@bufbuild/protobuf/wkt";
import { createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { answerKey, pastConnect } from "./messages-past-connect.ts";

const text = (value: string): Message => create(StringValueSchema, { value });

/** An answer that takes so many messages before it wants to be waited for. */
class Answer extends EventEmitter {
  headersSent = false;
  closed = false;
  destroyed = false;
  readonly written: Uint8Array[] = [];
  room: number;
  constructor(room = Number.POSITIVE_INFINITY) {
    super();
    this.room = room;
  }
  write(bytes: Uint8Array): boolean {
    this.written.push(bytes);
    return --this.room > 0;
  }
  texts = () =>
    this.written.map((bytes) => {
      expect([bytes[0], new DataView(bytes.buffer, bytes.byteOffset).getUint32(1)]).toEqual([0, bytes.length - 5]);
      return fromBinary(StringValueSchema, bytes.subarray(5)).value;
    });
}

/** What is left for Connect of a stream, and what has become of the stream. */
function run(messages: readonly Message[], answer: Answer, contentType = "application/connect+proto") {
  const state = { asked: 0, isOver: false, left: [] as string[] };
  async function* stream() {
    try {
      for (const message of messages) {
        state.asked++;
        yield message;
      }
    } finally {
      state.isOver = true;
    }
  }
  const values = createContextValues().set(answerKey, answer);
  const responseHeader = new Headers({ "content-type": contentType });
  const context = { values, responseHeader };
  const done = (async () => {
    for await (const message of pastConnect(stream(), StringValueSchema, context)) {
      state.left.push((message as StringValue).value);
      answer.headersSent = true; // Connect sends them with the first message
    }
  })();
  return { state, done };
}

test("the first message is Connect's, those behind it are written in order", async () => {
  const answer = new Answer();
  const { state, done } = run(["a", "b", "c"].map(text), answer);
  await done;
  expect([state.left, answer.texts()]).toEqual([["a"], ["b", "c"]]);
});

test("a message that many are told is encoded once", async () => {
  const [first, shared] = [text("a"), text("b")];
  const answers = [new Answer(), new Answer()];
  for (const answer of answers) await run([first, shared], answer).done;
  expect(answers[0]?.written[0]).toBe(answers[1]?.written[0]);
});

test("a large message, which Connect may compress, keeps its place among the others", async () => {
  const answer = new Answer();
  const large = "x".repeat(1024);
  const { state, done } = run(["a", "b", large, "c"].map(text), answer);
  await done;
  expect([state.left, answer.texts()]).toEqual([
    ["a", large],
    ["b", "c"],
  ]);
});

test("JSON is Connect's", async () => {
  const answer = new Answer();
  const { state, done } = run(["a", "b"].map(text), answer, "application/connect+json");
  await done;
  expect([state.left, answer.written]).toEqual([["a", "b"], []]);
});

test("nothing more is asked for before what was written is taken", async () => {
  const answer = new Answer(1);
  const { state, done } = run(["a", "b", "c"].map(text), answer);
  for (let turns = 0; turns < 10; turns++) await tick();
  expect(state.asked).toBe(2);
  answer.emit("drain");
  await tick();
  expect(state.asked).toBe(3);
  answer.emit("drain");
  await done;
  expect([answer.listenerCount("drain"), answer.listenerCount("close")]).toEqual([0, 0]);
});

test("where the client has gone the stream is told so, and nothing is waited for", async () => {
  const answer = new Answer(1);
  const { state, done } = run(["a", "b", "c", "d"].map(text), answer);
  while (answer.written.length === 0) await tick();
  answer.closed = true;
  answer.emit("close");
  await done;
  expect([state.isOver, state.asked, answer.written.length]).toEqual([true, 3, 1]);
});
