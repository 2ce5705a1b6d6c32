/** Clients that do not read their answers: others are still served, and the memory for them is limited. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { other, started } from "../fixtures/flooded.ts";
import { FrameType, frame, headers, ping, rawHttp2, reset, settings, streams } from "../fixtures/frames.ts";
import type { OnePortLimits } from "./limits.ts";
import type { Handler } from "./one-port.ts";

const PAGE = Buffer.alloc(86 * 1024);
const INITIAL_WINDOW_SIZE = 4;

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
      await expect.poll(waiting).toBeLessThanOrEqual(waitingBytes);
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
    let begun = 0;
    const handler: Handler = (request, response) => {
      if (other(request, response)) return;
      begun++;
      response.end(Buffer.alloc(16 * 1024 * 1024));
    };
    const { server, port, othersAreServed } = await started(handler, { writeMs: 300, ...limits });
    const accepted = once(server, "connection");
    const hostile = rawHttp2(port, { own: settings([INITIAL_WINDOW_SIZE, 2 ** 31 - 1]), reads: false });
    hostile.send(frame({ type: FrameType.WINDOW_UPDATE, payload: Buffer.from([0x7f, 0, 0, 0]) }));
    hostile.send(...streams(4).map((stream) => headers(stream)));
    const [socket] = await accepted;
    while (begun < 4) await othersAreServed();
    return { hostile, closed: once(socket, "close"), othersAreServed };
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
    const { hostile, closed, othersAreServed } = await unread({ writeMs: 60_000, waitingBytes: 10 * 1024 * 1024 });
    hostile.send(...streams(4).map((stream) => reset(stream)), ping());
    await closed;
    await othersAreServed();
  });
});
