/** What a hostile client can do with one port: the others are served, and what is kept for it is bounded. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  type Field,
  type Frame,
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
import { startOnePort } from "../fixtures/one-port.ts";
import { FRAMES_PER_SLICE } from "./frames-in-turns.ts";
import type { Handler, OnePortLimits } from "./one-port.ts";
import { REQUEST_BYTES, WORK_BYTES } from "./request-memory.ts";
import { WORK_PER_TURN } from "./turns.ts";

const PAGE = Buffer.alloc(86 * 1024);
const INITIAL_WINDOW_SIZE = 4;

async function started(handler: Handler, limits: Partial<OnePortLimits> = {}) {
  const { server, port, url } = await startOnePort(handler, limits);
  /** Asks on a connection of its own; what came before is dealt with then. */
  async function othersAreServed(localAddress = "127.0.0.1") {
    const session = connectHttp2(url, { createConnection: () => connect({ port, host: "127.0.0.1", localAddress }) });
    const answer = await text(session.request({ ":path": "/other" }));
    session.destroy();
    expect(answer).toBe("other");
  }
  return { server, port, url, othersAreServed };
}

const other = ({ url }: IncomingMessage, response: ServerResponse) => {
  if (url !== "/other") return false;
  response.end("other");
  return true;
};

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

describe("answers that nobody takes", () => {
  /** Answers everybody with a page. */
  function pages() {
    const answers: ServerResponse[] = [];
    const handler: Handler = (request, response) => {
      if (other(request, response)) return;
      answers.push(response);
      response.end(PAGE);
    };
    const waiting = () => answers.reduce((sum, { writableLength }) => sum + writableLength, 0);
    return { handler, waiting };
  }

  test("behind windows that are never opened are bounded in all", async () => {
    const { handler, waiting } = pages();
    const waitingBytes = 20 * PAGE.length;
    const { port, othersAreServed } = await started(handler, { waitingBytes });
    const hostile = Array.from({ length: 10 }, () => rawHttp2(port, { own: settings([INITIAL_WINDOW_SIZE, 0]) }));
    for (const { send } of hostile) {
      send(...streams(15).map((stream) => headers(stream)));
      await othersAreServed();
      expect(waiting()).toBeLessThanOrEqual(waitingBytes);
    }
    await Promise.all(hostile.slice(0, 8).map(({ closed }) => closed));
  });

  test("behind a window that is never opened are given up in time", async () => {
    const { handler, waiting } = pages();
    const { port, othersAreServed } = await started(handler, { writeMs: 100 });
    const hostile = rawHttp2(port, { own: settings([INITIAL_WINDOW_SIZE, 0]) });
    hostile.send(headers(1));
    await hostile.closed;
    await othersAreServed();
    expect(waiting()).toBe(0);
  });

  test("behind a window that is never opened are given up in time, whatever else is sent", async () => {
    const { handler, waiting } = pages();
    const { port, othersAreServed } = await started(handler, { writeMs: 300 });
    const hostile = rawHttp2(port, { own: settings([INITIAL_WINDOW_SIZE, 0]) });
    hostile.send(headers(1));
    const pings = setInterval(() => hostile.send(ping()), 20);
    onTestFinished(() => clearInterval(pings));
    await hostile.closed;
    await othersAreServed();
    expect(waiting()).toBe(0);
  });

  test.each([
    ["HTTP/1.1", Buffer.from("GET / HTTP/1.1\r\nhost: a\r\n\r\n")],
    [
      "HTTP/2",
      Buffer.concat([
        Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        settings([INITIAL_WINDOW_SIZE, 2 ** 31 - 1]),
        frame({ type: FrameType.WINDOW_UPDATE, payload: Buffer.from([0x7f, 0, 0, 0]) }),
        headers(1),
      ]),
    ],
  ])("by a client that doesn't read are given up in time: %s", async (_, request) => {
    const closed = Promise.withResolvers<void>();
    const { port, othersAreServed } = await started(
      (request, response) => {
        if (other(request, response)) return;
        response.once("close", () => closed.resolve());
        response.end(Buffer.alloc(64 * 1024 * 1024)); // more than the system keeps for a connection
      },
      { writeMs: 100, waitingBytes: Number.POSITIVE_INFINITY },
    );
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    onTestFinished(() => void socket.destroy());
    socket.write(request);
    await closed.promise;
    await othersAreServed();
  });
});

describe("answers that nobody reads", () => {
  const unread = async (limits: Partial<OnePortLimits> = {}) => {
    const handler: Handler = (request, response) =>
      void (other(request, response) || response.end(Buffer.alloc(16 * 1024 * 1024)));
    const { server, port, othersAreServed } = await started(handler, { writeMs: 300, ...limits });
    const accepted = once(server, "connection");
    const hostile = rawHttp2(port, { own: settings([INITIAL_WINDOW_SIZE, 2 ** 31 - 1]), reads: false });
    hostile.send(frame({ type: FrameType.WINDOW_UPDATE, payload: Buffer.from([0x7f, 0, 0, 0]) }));
    hostile.send(...streams(4).map((stream) => headers(stream)));
    const [socket] = await accepted;
    while (socket.writableLength === 0) await othersAreServed();
    return { hostile, socket, closed: once(socket, "close"), othersAreServed };
  };

  test.each([
    ["its requests", Buffer.concat(streams(4).map((stream) => reset(stream)))],
    ["the connection", frame({ type: FrameType.GOAWAY, payload: Buffer.from([0, 0, 0, 0, 0, 0, 0, 2]) })],
    ["the protocol", frame({ type: FrameType.PING, stream: 1, payload: Buffer.alloc(8) })],
  ])("are given up in time, though their client has ended %s", async (_, end) => {
    const { hostile, closed, othersAreServed } = await unread({ waitingBytes: Number.POSITIVE_INFINITY });
    hostile.send(end);
    await closed;
    await othersAreServed();
  });

  test("are bounded in all, though their requests are reset", async () => {
    const { hostile, closed, othersAreServed } = await unread({ writeMs: 60_000, waitingBytes: 80 * 1024 * 1024 });
    hostile.send(...streams(4).map((stream) => reset(stream)), ping());
    const others = rawHttp2((hostile.socket.remotePort ?? 0) as number, { own: settings([INITIAL_WINDOW_SIZE, 0]) });
    others.send(...streams(2).map((stream) => headers(stream)));
    await closed;
    await othersAreServed();
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

describe("requests that never end", () => {
  const ONE = REQUEST_BYTES + WORK_BYTES;
  const part = (stream: number, bytes: number) => frame({ type: FrameType.DATA, stream, payload: Buffer.alloc(bytes) });
  /** So many requests whose bodies have begun. */
  const begun = (count: number, from = 0) =>
    streams(count, from).map((stream) => headers(stream, undefined, END_HEADERS));
  const acknowledged = ({ type, flags }: Frame) => type === FrameType.PING && flags === ACK;
  const read: Handler = (request, response) => void (other(request, response) || request.resume());
  /** Of memory for 300 requests, all that one address may have. */
  const taken = async (port: number) => {
    const greedy = [rawHttp2(port), rawHttp2(port)];
    for (const { send, received } of greedy) {
      send(...begun(80), ping());
      await received(acknowledged);
    }
    return greedy;
  };
  const elsewhere = "127.0.0.2";
  const getOther: readonly Field[] = [
    [":method", "GET"],
    [":scheme", "http"],
    [":path", "/other"],
    [":authority", "a"],
  ];

  test("are refused beyond the share of their address, and may be sent again", async () => {
    let taken = 0;
    const count: Handler = (request, response) => void (other(request, response) || taken++);
    const { port, othersAreServed } = await started(count, { requestBytes: 20 * ONE });
    const hostile = [rawHttp2(port), rawHttp2(port)];
    for (const { send, received } of hostile) {
      send(...begun(15), ping());
      await received(acknowledged);
    }
    await othersAreServed(elsewhere);
    const refused = await hostile[1]?.received(({ type }) => type === FrameType.RST_STREAM);
    expect(refused?.payload.readUInt32BE()).toBe(7);
    expect(taken).toBeGreaterThan(5);
    expect(taken).toBeLessThanOrEqual(10);
  });

  test("over HTTP/1.1 are refused with 503", async () => {
    const { url, port, othersAreServed } = await started(read, { requestBytes: 4 * ONE });
    const hostile = rawHttp2(port);
    hostile.send(...begun(2), ping());
    await hostile.received(acknowledged);
    const refused = await fetch(url);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await refused.text()).toContain("Try again");
    await othersAreServed(elsewhere);
  });

  test("close the connection that goes on though all of them are refused", async () => {
    const { port, othersAreServed } = await started(read, { requestBytes: 20 * ONE });
    const hostile = rawHttp2(port);
    for (let i = 0; i < 200 && !hostile.socket.destroyed; i++) {
      hostile.send(...begun(10, 10 * i));
      await othersAreServed(elsewhere);
    }
    await hostile.closed;
    const { payload } = await hostile.received(({ type }) => type === FrameType.GOAWAY);
    expect(payload.readUInt32BE(4)).toBe(11);
  });

  test("count as long as something is done for them, be they reset", async () => {
    const work = Promise.withResolvers<void>();
    const all = Promise.withResolvers<void>();
    let taken = 0;
    const { port, othersAreServed } = await started(
      (request, response) => {
        if (other(request, response)) return;
        if (++taken === 10) all.resolve();
        return work.promise;
      },
      { requestBytes: 20 * ONE + 64 * 1024 },
    );
    const hostile = rawHttp2(port);
    hostile.send(...streams(10).map((stream) => headers(stream)));
    await all.promise;
    hostile.send(...streams(10).map((stream) => reset(stream)), ping());
    await hostile.received(acknowledged);
    const [another = 0] = streams(1, 10);
    hostile.send(headers(another));
    await hostile.received(({ type, stream }) => type === FrameType.RST_STREAM && stream === another);
    expect(taken).toBe(10);
    work.resolve();
    await othersAreServed();
  });

  test("may be refused any number of times, if some are taken between", async () => {
    const { port } = await started(read, { requestBytes: 300 * ONE });
    const patient = rawHttp2(port);
    const ask = async (from: number, count: number, type: number) => {
      const asked = streams(count, from);
      patient.send(...asked.map((stream) => headers(stream, getOther)));
      const last = asked.at(-1);
      await patient.received((frame) => frame.type === type && frame.stream === last);
    };
    for (const from of [0, 601]) {
      const greedy = await taken(port);
      for (let asked = 0; asked < 600; asked += 50) await ask(from + asked, 50, FrameType.RST_STREAM);
      for (const { send, received } of greedy) {
        send(...streams(80).map((stream) => reset(stream)), ping(1));
        await received((frame) => acknowledged(frame) && frame.payload?.[7] === 1);
      }
      await ask(from + 600, 1, FrameType.HEADERS);
    }
    expect(patient.socket.destroyed).toBe(false);
  });

  test.each([
    ["large", 6, 10_000],
    ["tiny", 200, 1],
  ])("close the connection with the most of them when their bodies grow, in %s pieces", async (_, count, bytes) => {
    const { port, othersAreServed } = await started(read, { requestBytes: 5 * ONE });
    const [modest, hostile] = [rawHttp2(port), rawHttp2(port)];
    modest.send(...begun(1), part(1, 1000), ping());
    await modest.received(acknowledged);
    hostile.send(...begun(1), ...Array.from({ length: count }, () => part(1, bytes)));
    await hostile.closed;
    await othersAreServed();
    expect(modest.socket.destroyed).toBe(false);
  });

  test("count until they are answered", async () => {
    const { port } = await started(
      (request, response) => void request.resume().once("end", () => response.end("answer")),
      { requestBytes: 4 * ONE },
    );
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    onTestFinished(() => session.destroy());
    for (let i = 0; i < 20; i++)
      expect(await text(session.request({ ":method": "POST" }).end(Buffer.alloc(10_000)))).toBe("answer");
  });
});
