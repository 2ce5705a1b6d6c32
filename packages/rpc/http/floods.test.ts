/** What a hostile client can do with one port: the others are served, and what is kept for it is bounded. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
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
import { FRAMES_PER_SLICE } from "./frames-in-turns.ts";
import { REQUEST_BYTES, WORK_BYTES } from "./request-memory.ts";
import { WORK_PER_TURN } from "./turns.ts";

const PAGE = Buffer.alloc(86 * 1024);

/** Sends for as long as the connection takes it, or the number of times. */
async function flood({ socket }: RawHttp2, part: Buffer, times: number): Promise<void> {
  for (let i = 0; i < times && !socket.destroyed; i++)
    if (!socket.write(part)) await Promise.race([once(socket, "drain"), once(socket, "close")]).catch(() => {});
}

describe("rapid reset", () => {
  test("what is reset together with its request never begins", async () => {
    let begun = 0;
    const { port, othersAreServed } = await started((request, response) => {
      if (other(request, response)) return;
      begun++;
      response.end(PAGE);
    });
    const hostile = rawHttp2(port);
    // Node reads the first packet of a connection in another way than those that follow.
    for (const from of [0, 300, 600]) {
      hostile.send(...streams(300, from).flatMap((stream) => [headers(stream), reset(stream)]), ping());
      await hostile.received(({ type, flags }) => type === FrameType.PING && flags === ACK);
      await othersAreServed();
    }
    expect(begun).toBe(0);
  });

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

  test("of HEAD gives back the memory that was taken for it", async () => {
    const requestBytes = 8 * (REQUEST_BYTES + WORK_BYTES);
    const { port, othersAreServed } = await started((request, response) => void other(request, response), {
      requestBytes,
    });
    const hostile = rawHttp2(port);
    for (let round = 0; round < 20; round++) {
      const four = streams(4, 4 * round);
      const isRead = (number: number) => hostile.received(({ payload }) => payload.equals(ping(number).subarray(9)));
      hostile.send(...four.map((stream) => headers(stream, asked("HEAD"))), ping(2 * round + 1));
      await isRead(2 * round + 1);
      hostile.send(...four.map((stream) => reset(stream)), ping(2 * round + 2));
      await isRead(2 * round + 2);
    }
    await othersAreServed();
  });

  test("of many connections leaves room between a few streams", async () => {
    let [inTurn, most, all] = [0, 0, 0];
    const count = () => {
      if (inTurn === 0) setImmediate(() => (inTurn = 0));
      most = Math.max(most, ++inTurn);
      all++;
    };
    subscribe("http2.server.stream.created", count);
    onTestFinished(() => void unsubscribe("http2.server.stream.created", count));
    const { port, othersAreServed } = await started((request, response) => void other(request, response));
    const hostile = Array.from({ length: 10 }, () => rawHttp2(port));
    for (const { send } of hostile) send(...streams(500).flatMap((stream) => [headers(stream), reset(stream)]), ping());
    await Promise.all(
      hostile.map(({ received }) => received(({ type, flags }) => type === FrameType.PING && flags === ACK)),
    );
    await othersAreServed();
    expect(all).toBeGreaterThan(5000);
    expect(most).toBeLessThanOrEqual((WORK_PER_TURN * FRAMES_PER_SLICE) / 2);
  });

  test("leaves room for those who connect: while they do, a turn is shorter", async () => {
    let all = 0;
    const count = () => void all++;
    subscribe("http2.server.stream.created", count);
    onTestFinished(() => void unsubscribe("http2.server.stream.created", count));
    const { server, port, othersAreServed } = await started((request, response) => void other(request, response));
    const inTurns: number[] = [];
    server.prependListener("connection", () => {
      const before = all;
      // Behind the turn that is due already.
      setImmediate(() => inTurns.push(all - before));
    });
    const hostile = Array.from({ length: 10 }, () => rawHttp2(port));
    for (const { send } of hostile) send(...streams(500).flatMap((stream) => [headers(stream), reset(stream)]));
    for (let i = 0; i < 20; i++) rawHttp2(port);
    for (let i = 0; i < 10; i++) await othersAreServed();
    expect(inTurns.length).toBeGreaterThanOrEqual(40);
    expect(Math.max(...inTurns)).toBeLessThanOrEqual(FRAMES_PER_SLICE);
  });

  test("handlers that run for reset requests count", async () => {
    let begun = 0;
    const enough = new Map([100, 200].map((count) => [count, Promise.withResolvers<void>()]));
    const { port, othersAreServed } = await started((request, response) => {
      if (other(request, response)) return;
      enough.get(++begun)?.resolve();
      return new Promise(() => {});
    });
    const hostile = rawHttp2(port);
    for (const [count, { promise }] of enough) {
      const some = streams(100, count - 100);
      hostile.send(...some.map((stream) => headers(stream)));
      await promise;
      hostile.send(...some.map((stream) => reset(stream)));
    }
    const [refused = 0] = streams(1, 200);
    hostile.send(headers(refused));
    const { payload } = await hostile.received(
      ({ type, stream }) => type === FrameType.RST_STREAM && stream === refused,
    );
    expect(payload.readUInt32BE()).toBe(7);
    await othersAreServed();
    expect(begun).toBe(200);
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

test("of many pipelined HTTP/1.1 requests few are read while the first runs", async () => {
  const first = Promise.withResolvers<void>();
  const { server, port, othersAreServed } = await started((request, response) => {
    if (!other(request, response)) first.resolve();
  });
  let read = 0;
  server.prependListener("request", () => read++);
  const hostile = connect(port, "127.0.0.1").on("error", () => {});
  onTestFinished(() => void hostile.destroy());
  hostile.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(2000));
  await first.promise;
  for (let i = 0; i < 20; i++) await othersAreServed();
  expect(read).toBeLessThan(100);
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
