/** Streams of requests that are answered by streams. */
import { once } from "node:events";
import { connect as connectHttp2, createServer, type Http2Server } from "node:http2";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { afterEach, describe, expect, test } from "vitest";
import { compileTalk, serviceOf } from "../fixtures/compile.ts";
import { serve } from "../fixtures/server.ts";
import type { TranscoderOptions } from "../index.ts";

const service = serviceOf(compileTalk(), "foreign.talk.v1.TalkService");

interface Said {
  readonly name: string;
  readonly number: bigint;
}
type Chat = (messages: AsyncIterable<Said>, context: HandlerContext) => AsyncIterable<object>;

let server: Awaited<ReturnType<typeof serve>>;
afterEach(() => server?.app.close());

async function start(chat: Chat, options: Partial<TranscoderOptions> = {}, http2 = false) {
  server = await serve(service, { chat } as never, options, undefined, http2);
  return server.call;
}

const echo: Chat = async function* (messages) {
  for await (const { name, number } of messages) {
    if (number === 13n) throw new ConnectError("no thirteen", Code.OutOfRange);
    yield { name, sum: number };
  }
};
const LINES = "application/x-ndjson";
const line = (number: number) => `{"number":${number}}\n`;
const answer = (number: number) => `{"name":"a","sum":${number},"text":""}\n`;
const FAILURE = `{"error":{"code":"OUT_OF_RANGE","message":"no thirteen","status":400}}\n`;

const HEAD = `POST /chats/a HTTP/1.1\r\nhost: a\r\ncontent-type: ${LINES}\r\ntransfer-encoding: chunked\r\n\r\n`;
const chunk = (body: string) => `${body.length.toString(16)}\r\n${body}\r\n`;

/** A request over HTTP/1.1 that is still being sent, and what has come for it. */
function talk() {
  const socket = connect(server.port, "127.0.0.1").setEncoding("utf8");
  socket.write(HEAD);
  let seen = "";
  socket.on("data", (piece) => {
    seen += piece;
  });
  const closed = once(socket, "close");
  return {
    socket,
    closed,
    seen: () => seen,
    say: (body: string) => socket.write(chunk(body)),
    async until(part: string) {
      while (!seen.includes(part)) await turn();
    },
  };
}

/** The same over HTTP/2. */
function talkHttp2() {
  const session = connectHttp2(`http://127.0.0.1:${server.port}`);
  const stream = session.request({ ":method": "POST", ":path": "/chats/a", "content-type": LINES });
  stream.on("error", () => {}).setEncoding("utf8");
  let seen = "";
  stream.on("data", (piece) => {
    seen += piece;
  });
  const closed = new Promise<number>((resolve) =>
    stream.once("close", () => {
      session.close();
      resolve(stream.rstCode ?? -1);
    }),
  );
  return {
    stream,
    closed,
    seen: () => seen,
    say: (body: string) => stream.write(body),
    async until(part: string) {
      while (!seen.includes(part)) await turn();
    },
  };
}

test("over HTTP/2 each side goes on while the other does", async () => {
  await start(echo, {}, true);
  const { stream, say, until, seen, closed } = talkHttp2();
  for (const number of [1, 2, 3]) {
    say(line(number));
    await until(answer(number));
  }
  stream.end();
  expect(await closed).toBe(0);
  expect(seen()).toBe(answer(1) + answer(2) + answer(3));
});

test("over HTTP/1.1 the answer may begin before the request has ended", async () => {
  await start(echo);
  const { socket, say, until, seen, closed } = talk();
  for (const number of [1, 2, 3]) {
    say(line(number));
    await until(answer(number));
  }
  socket.write("0\r\n\r\n");
  await until("\r\n0\r\n\r\n");
  expect(seen()).toMatch(/^HTTP\/1\.1 200 /);
  socket.end();
  await closed;
});

test("a whole request is answered as a whole, in each form", async () => {
  const call = await start(echo);
  const ask = (accept: string, body: string, type = LINES) =>
    call("/chats/a", { method: "POST", body: Buffer.from(body), headers: { accept, "content-type": type } });
  expect((await ask("*/*", line(1) + line(2))).text).toBe(answer(1) + answer(2));
  expect((await ask("application/json", `[${line(1)},${line(2)}]`, "application/json")).record()).toEqual([
    { name: "a", sum: 1, text: "" },
    { name: "a", sum: 2, text: "" },
  ]);
  expect((await ask("text/event-stream", line(1))).text).toBe(`data: ${answer(1)}\n`);
});

describe("what fails", () => {
  test("before the first answer has its status", async () => {
    const call = await start(echo);
    const ask = (body: string) =>
      call("/chats/a", { method: "POST", body: Buffer.from(body), headers: { "content-type": LINES } });
    expect((await ask(line(13))).record()).toMatchObject({ code: "OUT_OF_RANGE", status: 400 });
    expect((await ask(line(-1))).record()).toMatchObject({
      message: "Message 1: number: must be greater than or equal to 0",
      status: 400,
    });
  });

  test("after it ends the answer, and not in good order, while the request is being sent", async () => {
    await start(echo);
    const { say, until, seen, closed } = talk();
    say(line(1));
    await until(answer(1));
    say(line(13));
    await closed;
    expect(seen()).toContain(FAILURE);
    expect(seen()).not.toContain("\r\n0\r\n");
  });

  test("after it resets the stream of HTTP/2", async () => {
    await start(echo, {}, true);
    const { say, until, seen, closed } = talkHttp2();
    say(line(1));
    await until(answer(1));
    say(line(13));
    expect(await closed).toBe(2);
    expect(seen()).toBe(answer(1) + FAILURE);
  });

  test("in a later message is told as such", async () => {
    await start(echo, {}, true);
    const { say, until, seen, closed } = talkHttp2();
    say(line(1));
    await until(answer(1));
    say("{\n");
    expect(await closed).toBe(2);
    expect(seen()).toContain('{"error":{"code":"MALFORMED_JSON","message":"Message 2: The body is not JSON');
  });
});

describe("answers that are not read", () => {
  const size = 100_000;
  const pour = (ended: (count: number) => void): Chat =>
    async function* (_, { signal }) {
      let count = 0;
      signal.addEventListener("abort", () => ended(count));
      for (; ; count++) yield { text: "x".repeat(size) };
    };

  test("end the call over HTTP/1.1 beyond 1 MiB, while the request is being sent", async () => {
    const ended = Promise.withResolvers<number>();
    await start(pour(ended.resolve));
    const socket = connect(server.port, "127.0.0.1").pause();
    socket.write(HEAD);
    expect(await ended.promise).toBeGreaterThanOrEqual(10);
    const all = await text(socket);
    expect(all).toMatch(/\{"error":\{"code":"RESOURCE_EXHAUSTED","message":"[^"]*1 MiB[^"]*","status":429\}\}\n\r\n$/);
  });

  test("hold the service up where the request has ended, and over HTTP/2", async () => {
    for (const http2 of [false, true]) {
      let count = 0;
      await start(
        async function* () {
          for (; ; count++) yield { text: "x".repeat(size) };
        },
        {},
        http2,
      );
      const giveUp = http2 ? openHttp2() : openHttp1();
      let before = -1;
      while (before !== count || count === 0) {
        before = count;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      giveUp();
      await server.app.close();
    }
  }, 20_000);
});

/** Asks and reads nothing. What is returned gives up. */
function openHttp1() {
  const socket = connect(server.port, "127.0.0.1").pause();
  socket.write(`${HEAD}0\r\n\r\n`);
  return () => socket.destroy();
}

function openHttp2() {
  const session = connectHttp2(`http://127.0.0.1:${server.port}`);
  const stream = session.request({ ":method": "POST", ":path": "/chats/a", "content-type": LINES });
  stream.on("error", () => {}).pause();
  return () => session.destroy();
}

describe("through gRPC", () => {
  let upstream: Http2Server;
  afterEach(() => void upstream?.close());

  async function startUpstream(chat: Chat) {
    const adapter = connectNodeAdapter({ routes: (router) => router.service(service, { chat } as never) });
    upstream = createServer(adapter).listen(0, "127.0.0.1");
    await once(upstream, "listening");
    const { port } = upstream.address() as { port: number };
    const sessions = new Http2SessionManager(`http://127.0.0.1:${port}`);
    const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}`, sessionManager: sessions });
    await start(chat, { services: [{ desc: service, transport }] }, true);
    return sessions;
  }

  test("each side goes on while the other does", async () => {
    const sessions = await startUpstream(echo);
    const { stream, say, until, seen, closed } = talkHttp2();
    for (const number of [1, 2, 3]) {
      say(line(number));
      await until(answer(number));
    }
    stream.end();
    expect(await closed).toBe(0);
    expect(seen()).toBe(answer(1) + answer(2) + answer(3));
    sessions.abort();
  });

  // Node's client of HTTP/2 ends the stream of requests before it resets it: to the service it looks whole for a moment.
  test("a request that is wrong in the midst cancels the call", async () => {
    const cancelled = Promise.withResolvers<void>();
    const sessions = await startUpstream((messages, context) => {
      context.signal.addEventListener("abort", () => cancelled.resolve());
      return echo(messages, context);
    });
    const { say, until, seen, closed } = talkHttp2();
    say(line(1));
    await until(answer(1));
    say("{\n");
    expect(await closed).toBe(2);
    expect(seen()).toContain("Message 2: The body is not JSON");
    await cancelled.promise;
    sessions.abort();
  });
});
