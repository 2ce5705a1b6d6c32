import { once } from "node:events";
import { constants } from "node:http2";
import { connect } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { other, started } from "../fixtures/flooded.ts";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  type Field,
  FrameType,
  frame,
  headerBlock,
  headers,
  PREFACE,
  ping,
  type RawHttp2,
  rawHttp2,
  reset,
  settings,
  streams,
} from "../fixtures/frames.ts";
import { OPEN_REQUESTS } from "./request-budget.ts";

const PAGE = Buffer.alloc(86 * 1024);

const data = (stream: number, text: string, flags = 0): Buffer =>
  frame({ type: FrameType.DATA, flags, stream, payload: Buffer.from(text) });

/** Sends for as long as the connection takes it, or the number of times. */
async function flood({ socket }: RawHttp2, part: Buffer, times: number): Promise<void> {
  for (let i = 0; i < times && !socket.destroyed; i++)
    if (!socket.write(part)) await Promise.race([once(socket, "drain"), once(socket, "close")]).catch(() => {});
}

describe("rapid reset", () => {
  const asked = (method: string, ...more: Field[]): Field[] => [
    [":method", method],
    [":scheme", "http"],
    [":path", "/"],
    [":authority", "localhost"],
    ...more,
  ];

  test("of a request that expects 100-continue ends no process", async () => {
    const { port, othersAreServed } = await started((request, response) => void other(request, response));
    const hostile = rawHttp2(port);
    hostile.send(headers(1, asked("GET", ["expect", "100-continue"])), reset(1), ping());
    await hostile.received(({ type, flags }) => type === FrameType.PING && flags === ACK);
    await othersAreServed();
  });

  test.each<[string, (stream: number) => Buffer]>([
    ["without a body", (stream) => headers(stream)],
    [
      "with a body",
      (stream) => Buffer.concat([headers(stream, asked("POST"), END_HEADERS), data(stream, "{}", END_STREAM)]),
    ],
    ["whose body goes on", (stream) => Buffer.concat([headers(stream, asked("POST"), END_HEADERS), data(stream, "{")])],
  ])("begins none of the requests %s that are reset together with it, but for the first", async (_, ask) => {
    let begun = 0;
    const { port, othersAreServed } = await started((request, response) => {
      if (!other(request, response)) begun++;
    });
    const hostile = rawHttp2(port);
    const codes = [constants.NGHTTP2_CANCEL, constants.NGHTTP2_NO_ERROR];
    hostile.send(...streams(100).flatMap((stream, i) => [ask(stream), reset(stream, codes[i % 2])]), ping());
    await hostile.received(({ type, flags }) => type === FrameType.PING && flags === ACK);
    await othersAreServed();
    expect(begun).toBeLessThanOrEqual(1);
  });

  test("without end closes the connection", async () => {
    const { port, othersAreServed } = await started((request, response) => {
      if (!other(request, response)) response.end(PAGE);
    });
    const hostile = rawHttp2(port);
    // nghttp2 allows 1,000 resets, and 33 more in each second that passes meanwhile.
    for (let i = 0; i < 200 && !hostile.socket.destroyed; i++) {
      hostile.send(...streams(100, 100 * i).flatMap((stream) => [headers(stream), reset(stream)]));
      await othersAreServed();
    }
    await hostile.closed;
  });
});

test("more requests at a time than allowed are refused", async () => {
  let begun = 0;
  const { port, othersAreServed } = await started((request, response) => {
    if (!other(request, response)) begun++;
  });
  const hostile = rawHttp2(port);
  hostile.send(...streams(101).map((stream) => headers(stream)));
  const [, , last = 0] = streams(3, 98);
  await hostile.received(({ type, stream }) => type === FrameType.RST_STREAM && stream === last);
  await othersAreServed();
  expect(begun).toBe(100);
});

test("more open requests than there may be are refused, however much memory is left, and may be sent again", async () => {
  const limits = { connectionsPerAddress: undefined, requestBytes: Number.POSITIVE_INFINITY };
  const { port, othersAreServed } = await started((request, response) => void other(request, response), limits);
  const sessions = Array.from({ length: OPEN_REQUESTS / 100 }, () => rawHttp2(port));
  for (const { send, received } of sessions) {
    send(...streams(100).map((stream) => headers(stream)), ping());
    await received(({ type, flags }) => type === FrameType.PING && flags === ACK);
  }
  const late = rawHttp2(port);
  late.send(headers(1));
  const refused = await late.received(({ type }) => type === FrameType.RST_STREAM);
  expect(refused.payload.readUInt32BE()).toBe(constants.NGHTTP2_REFUSED_STREAM);
  sessions[0]?.socket.destroy();
  await vi.waitFor(() => othersAreServed(), { timeout: 30_000 });
});

test("more pipelined HTTP/1.1 requests than may wait end the connection", async () => {
  let begun = 0;
  const { port, othersAreServed } = await started((request, response) => {
    if (!other(request, response)) begun++;
  });
  const hostile = connect(port, "127.0.0.1")
    .on("error", () => {})
    .resume();
  onTestFinished(() => void hostile.destroy());
  hostile.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(2000));
  await once(hostile, "close");
  expect(begun).toBeLessThanOrEqual(10);
  await othersAreServed();
});

describe("frames without end", () => {
  test("CONTINUATION closes the connection", async () => {
    const { port, othersAreServed } = await started(other as never);
    const hostile = rawHttp2(port);
    const beginning = headers(1, undefined, END_STREAM);
    const more = frame({ type: FrameType.CONTINUATION, stream: 1, payload: headerBlock([["x", "y".repeat(1000)]]) });
    hostile.send(beginning);
    await flood(hostile, more, 100_000);
    await hostile.closed;
    await othersAreServed();
  });

  test.each([
    ["SETTINGS", settings()],
    ["PING", ping()],
  ])("%s, whose acknowledgements nobody reads, is read no further, and closes the connection", async (_, part) => {
    const { port, othersAreServed } = await started(other as never, { idleMs: 100, sniffMs: 100 });
    const hostile = rawHttp2(port, { reads: false });
    const many = Buffer.concat(Array.from({ length: 10_000 }, () => part));
    await flood(hostile, many, 1000);
    await hostile.closed;
    // What the system keeps on the way, and not all of it.
    expect(hostile.socket.bytesWritten).toBeLessThan(500 * many.length);
    await othersAreServed();
  });

  test.each([
    ["empty DATA", frame({ type: FrameType.DATA, stream: 1 })],
    ["WINDOW_UPDATE", frame({ type: FrameType.WINDOW_UPDATE, payload: Buffer.from([0, 0, 0, 1]) })],
  ])("%s is dealt with while others are served", async (_, part) => {
    const { port, othersAreServed } = await started((request, response) => void other(request, response));
    const hostile = rawHttp2(port);
    hostile.send(headers(1, undefined, END_HEADERS));
    const many = Buffer.concat(Array.from({ length: 1000 }, () => part));
    for (let i = 0; i < 10; i++) {
      await flood(hostile, many, 10);
      await othersAreServed();
    }
  });
});

test("a client that says goodbye and stays is left", async () => {
  const { server, port } = await started((request, response) => void other(request, response));
  const accepted = once(server, "connection");
  const client = connect({ port, host: "127.0.0.1", allowHalfOpen: true }).resume();
  onTestFinished(() => void client.destroy());
  const goodbye = frame({ type: FrameType.GOAWAY, payload: Buffer.alloc(8) });
  client.write(Buffer.concat([PREFACE, settings(), goodbye]));
  const [socket] = await accepted;
  await once(socket, "close");
});
