/** How an answer that streams is written, as fast as it is read. */
import { PassThrough } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { eventFormats, type StreamEvent } from "../response/events.ts";
import { writeStream } from "./write-stream.ts";

const HEAD = "retry: 3000\n\n";

describe("writing", () => {
  const [inBlocks, inLines] = eventFormats as [(typeof eventFormats)[0], (typeof eventFormats)[0]];

  /** A source of endless events that counts how many were asked for; time passes when it is told to. */
  function writing(highWaterMark: number, format = inBlocks) {
    const output = new PassThrough({ highWaterMark });
    const over = new AbortController();
    let asked = 0;
    const alarms = new Set<() => void>();
    const events = (async function* () {
      for (;;) yield { id: `${++asked}`, name: "", data: "1" };
    })();
    const silent = () =>
      new Promise<never>((_, reject) => over.signal.addEventListener("abort", () => reject(new Error())));
    const tell = () => expect.fail("told");
    const write = (first = events.next(), rest: AsyncIterator<StreamEvent> = events) =>
      writeStream(
        output,
        format.open(""),
        { first, messages: rest, isLate: false, signal: over.signal, tell },
        (_ms, work) => {
          alarms.add(work);
          return () => alarms.delete(work);
        },
      );
    return {
      output,
      taken() {
        let text = "";
        for (let piece = output.read(); piece !== null; piece = output.read()) text += piece;
        return text;
      },
      write,
      silent,
      over,
      asked: () => asked,
      alarms,
      pass() {
        for (const work of [...alarms]) {
          alarms.delete(work);
          work();
        }
      },
    };
  }

  test("asks for no more than its reader takes", async () => {
    const { output, write, asked, over } = writing(64);
    const written = write();
    for (let i = 0; i < 100; i++) await turn();
    const before = asked();
    expect(before).toBeLessThan(10);
    while (asked() === before) {
      output.read();
      await turn();
    }
    for (let i = 0; i < 100; i++) await turn();
    expect(asked()).toBeLessThan(20);
    over.abort();
    await written;
    expect(output.writableEnded).toBe(true);
  });

  test("shows that it lives when there is nothing to tell, but not to a reader who takes nothing", async () => {
    const { taken, write, silent, over, pass, alarms } = writing(HEAD.length + 20);
    const written = write(silent());
    await turn();
    pass();
    await turn();
    expect(taken()).toBe(`${HEAD}: heartbeat\n\n`);
    for (let i = 0; i < 100; i++) pass();
    await turn();
    expect(taken().length).toBeLessThan(100);
    over.abort();
    await written;
    expect(alarms.size).toBe(0);
  });

  test("in lines of JSON shows that it lives by where to go on, which no later line without an id takes back", async () => {
    const { taken, write, silent, over, pass } = writing(1000, inLines);
    const told = ["p1", ""].map((id) => ({ done: false as const, value: { id, name: "", data: "1" } }));
    const next = () => Promise.resolve(told.shift()).then((event) => event ?? silent());
    const written = write(next(), { next });
    for (let i = 0; i < 10; i++) await turn();
    pass();
    await turn();
    expect(taken()).toBe('{"id":"p1","data":1}\n{"id":"p1","data":1}\n{"id":"p1"}\n');
    over.abort();
    await written;
  });
});
