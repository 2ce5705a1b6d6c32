/** Streams over real connections: how long they last, what a slow reader costs, and what is left of one that has gone. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { END_HEADERS, END_STREAM, FrameType, frame, headers, rawHttp2 } from "../fixtures/frames.ts";
import { startTicker, TickerService, transports, WATCH_PATH, type Watch, watchByHand } from "../fixtures/ticker.ts";
import { newAuthority, openFiles, pairOf } from "../fixtures/tls.ts";

const forever = () => new Promise<never>(() => {});

test.each(transports)("over %s the first message is there before there is a second", async (_, transport) => {
  const goOn = Promise.withResolvers<void>();
  const { url } = await startTicker(async function* () {
    yield { text: "first" };
    await goOn.promise;
    yield { text: "second" };
  });
  const ticks = createClient(TickerService, transport(url)).watch({})[Symbol.asyncIterator]();
  expect((await ticks.next()).value?.text).toBe("first");
  goOn.resolve();
  expect((await ticks.next()).value?.text).toBe("second");
  expect((await ticks.next()).done).toBe(true);
});

test.each(transports)("over %s with TLS, too, and a reader that leaves is noticed", async (_, transport) => {
  const authority = await newAuthority();
  const { certificates } = await openFiles(await pairOf(authority));
  const [goOn, freed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const watch: Watch = async function* (_, { signal }) {
    signal.addEventListener("abort", () => freed.resolve());
    yield { text: "first" };
    await goOn.promise;
    yield { text: "second" };
    await forever();
  };
  const { url } = await startTicker(watch, { tls: { certificates } });
  const gone = new AbortController();
  const client = createClient(TickerService, transport(url, authority.cert));
  const ticks = client.watch({}, { signal: gone.signal })[Symbol.asyncIterator]();
  expect((await ticks.next()).value?.text).toBe("first");
  goOn.resolve();
  expect((await ticks.next()).value?.text).toBe("second");
  gone.abort();
  await freed.promise;
});

describe.each([
  ["HTTP/1.1", "connect"],
  ["HTTP/2", "connect"],
  ["HTTP/1.1", "grpc"],
  ["HTTP/2", "grpc"],
] as const)("over %s, by %s", (protocol, type) => {
  const MESSAGE = "x".repeat(100_000);
  const MESSAGES = 500;
  /** Much more than what any buffer on the way holds. */
  const MOST_WAITING = 100;

  test("a handler waits for a slow reader", async () => {
    let sent = 0;
    const { url } = await startTicker(async function* () {
      for (; sent < MESSAGES; sent++) yield { text: MESSAGE };
    });
    const { body } = await watchByHand(url, protocol, type);
    let most = 0;
    let bytes = 0;
    for await (const chunk of body) {
      most = Math.max(most, sent - bytes / MESSAGE.length);
      bytes += chunk.length;
      await nextTurn();
    }
    expect(sent).toBe(MESSAGES);
    expect(bytes).toBeGreaterThan(MESSAGES * MESSAGE.length);
    expect(most).toBeLessThan(MOST_WAITING);
  });

  test.each(["waits for its next message", "has stopped reading"])(
    "a reader that %s and goes away is noticed",
    async (how) => {
      const freed = Promise.withResolvers<void>();
      const waits = Promise.withResolvers<void>();
      const { url, logged } = await startTicker(async function* (_, { signal }) {
        signal.addEventListener("abort", () => freed.resolve());
        yield { text: "first" };
        if (how.startsWith("waits")) {
          waits.resolve();
          await forever();
        }
        for (let sent = 0; ; sent++) {
          if (sent === 0) setImmediate(waits.resolve);
          yield { text: MESSAGE };
        }
      });
      const { leave } = await watchByHand(url, protocol, type);
      await waits.promise;
      leave();
      await freed.promise;
      await vi.waitUntil(() => logged.some(({ code }) => code === "Canceled"), { timeout: 30_000 });
    },
  );

  test("what was kept for readers that have gone is free for others", async () => {
    let freed = 0;
    const { url } = await startTicker(async function* () {
      try {
        for (;;) yield { text: MESSAGE };
      } finally {
        freed++;
      }
    });
    for (let readers = 0; readers < 16; readers++) {
      const { leave, closed } = await watchByHand(url, protocol, type);
      leave();
      await closed;
    }
    await vi.waitUntil(() => freed === 16, { timeout: 30_000 });
  });

  test("neither a stream without messages nor one that few messages come of has a limit of time", async () => {
    const limits = { requestMs: 200, idleMs: 200, writeMs: 200, keepAliveMs: 200 };
    let ticks = 0;
    const { url } = await startTicker(
      async function* () {
        yield { text: "first" };
        for (; ticks < 3; ticks++) {
          await new Promise((resolve) => setTimeout(resolve, 400));
          yield { text: "next" };
        }
      },
      { limits },
    );
    const { body } = await watchByHand(url, protocol, type);
    body.resume();
    await once(body, "end");
    expect(ticks).toBe(3);
  });
});

test.each([
  ["has ended its side", (socket: Socket) => void socket.end().resume()],
  ["takes nothing of what is sent to it, as one that was cut off", (socket: Socket) => void socket.pause()],
])("a client of HTTP/1.1 that %s is given up, with all that was done for it", async (_, stop) => {
  const freed = Promise.withResolvers<void>();
  const { port } = await startTicker(
    async function* (_, { signal }) {
      signal.addEventListener("abort", () => freed.resolve());
      yield { text: "first" };
      for (;;) {
        await nextTurn();
        yield { text: "x".repeat(100_000) };
      }
    },
    { limits: { writeMs: 1000 } }, // looked at every 200 ms; with much less a busy machine is late for each look
  );
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }).on("error", () => {});
  onTestFinished(() => void socket.destroy());
  const fields = "content-type: application/connect+proto\r\ncontent-length: 5\r\n";
  socket.write(`POST ${WATCH_PATH} HTTP/1.1\r\nhost: a\r\n${fields}\r\n\0\0\0\0\0`);
  await once(socket, "data");
  stop(socket);
  await freed.promise;
});

test("a client of HTTP/2 that does not say any more that it is there is given up, with all that was done for it", async () => {
  const freed = Promise.withResolvers<void>();
  const { port } = await startTicker(
    async function* (_, { signal }) {
      signal.addEventListener("abort", () => freed.resolve());
      for (;;) {
        yield { text: "tick" };
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
    { limits: { keepAliveMs: 100 } },
  );
  const client = watchAsOneCutOff(port, WATCH_PATH);
  await freed.promise;
  await client.closed;
});

test("a watch of health, which lasts, ends with a client that does not say any more that it is there", async () => {
  const { port } = await startTicker(async function* () {}, { limits: { keepAliveMs: 100 } });
  const client = watchAsOneCutOff(port, "/grpc.health.v1.Health/Watch");
  await client.received(({ type, stream }) => type === FrameType.DATA && stream === 1);
  await client.closed;
});

/** Answers no PING, as one that was cut off. What is sent to it goes to the system all the same. */
function watchAsOneCutOff(port: number, path: string) {
  const client = rawHttp2(port);
  client.send(
    headers(
      1,
      [
        [":method", "POST"],
        [":scheme", "http"],
        [":path", path],
        [":authority", "a"],
        ["content-type", "application/connect+proto"],
      ],
      END_HEADERS,
    ),
    frame({ type: FrameType.DATA, flags: END_STREAM, stream: 1, payload: Buffer.alloc(5) }),
  );
  return client;
}
