/** Clients that do not read their answers: others are still served, and the memory for all of them together is limited. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { other, started } from "../fixtures/flooded.ts";
import { FrameType, frame, headers, ping, rawHttp2, reset, settings, streams } from "../fixtures/frames.ts";
import { startOnePort } from "../fixtures/one-port.ts";
import type { OnePortLimits } from "./limits.ts";
import type { Handler } from "./requests.ts";
import { whenStalled } from "./unread.ts";

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
      { writeMs: 1000, waitingBytes: Number.POSITIVE_INFINITY },
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
    const closed = once(socket, "close"); // on a busy machine this may be soon
    while (begun < 4 && !socket.destroyed) await othersAreServed();
    return { hostile, closed, othersAreServed };
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

describe("the time limit for clients that read nothing", () => {
  /** A response whose timer the test lets run out. */
  function stub() {
    const socket = { bytesWritten: 1000, writableLength: 400, armed: 0, setTimeout: () => void socket.armed++ };
    let runOut = () => {};
    const response = {
      socket,
      get writableLength() {
        return socket.writableLength;
      },
      setTimeout: (_ms: number, listener: () => void) => (runOut = listener),
    };
    let now = 0;
    let isGivenUp = false;
    whenStalled(
      response as unknown as ServerResponse,
      500,
      () => (isGivenUp = true),
      () => now,
    );
    return {
      socket,
      /** How often it runs out, each time after `ms`, until the client is given up; undefined if it is not. */
      looks(most: number, ms: number): number | undefined {
        for (let i = 1; i <= most; i++) {
          now += ms;
          runOut();
          if (isGivenUp) return i;
        }
        return undefined;
      },
    };
  }

  test("an answer of which nothing is taken is given up after its time", () => {
    expect(stub().looks(10, 100)).toBe(5);
  });

  test("a late timer makes no difference", () => {
    expect(stub().looks(10, 170)).toBe(5);
  });

  test("where a write was taken the time begins anew", () => {
    const { socket, looks } = stub();
    expect(looks(4, 100)).toBeUndefined();
    socket.writableLength = 300;
    expect(looks(10, 100)).toBe(5);
  });

  test("where a part of one was taken, for which Node starts the timer over, it begins anew", () => {
    const { looks } = stub();
    expect(looks(4, 100)).toBeUndefined();
    expect(looks(1, 200)).toBeUndefined();
    expect(looks(10, 100)).toBe(4);
  });

  test("where nothing waits nobody looks again before the next write", () => {
    const { socket, looks } = stub();
    socket.writableLength = 0;
    expect(looks(10, 100)).toBeUndefined();
    expect(socket.armed).toBe(0);
  });

  test("a client that reads nothing is given up well before Node's own timer would say so", async () => {
    const writeMs = 5000; // of which less than two fifths must pass between two looks, also on a busy machine
    const page = Buffer.alloc(64 * 1024 * 1024); // more than the system keeps for a connection
    const given: string[] = [];
    const asked = { node: Promise.withResolvers<ServerResponse>(), us: Promise.withResolvers<ServerResponse>() };
    const node = createServer((_, response) => asked.node.resolve(response)).listen(0, "127.0.0.1");
    await once(node, "listening");
    onTestFinished(() => void node.close());
    const limits = { writeMs, waitingBytes: Number.POSITIVE_INFINITY };
    const ours = await startOnePort((_, response) => asked.us.resolve(response), limits);
    for (const port of [(node.address() as AddressInfo).port, ours.port]) {
      const socket = connect(port, "127.0.0.1").on("error", () => {});
      onTestFinished(() => void socket.destroy());
      socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    }
    const [byNode, byUs] = await Promise.all([asked.node.promise, asked.us.promise]);
    byNode.once("close", () => given.push("Node"));
    byUs.once("close", () => given.push("ours"));
    const closed = once(byUs, "close");
    // In one turn, Node's first: of two timers that run for the same time it has the one that runs out first.
    byNode.setTimeout(writeMs, () => void byNode.destroy()).end(page);
    byUs.end(page);
    await closed;
    expect(given).toEqual(["ours"]);
  });
});
