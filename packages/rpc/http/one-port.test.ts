import { once } from "node:events";
import {
  type ClientRequest,
  request as http1Request,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
  type Http2Stream,
} from "node:http2";
import { connect as connectTcp, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { FrameType, headers, PREFACE, rawHttp2, settings } from "../fixtures/frames.ts";
import { startOnePort } from "../fixtures/one-port.ts";
import type { OnePortLimits } from "./limits.ts";
import { announceClose, closePort, cutOff } from "./one-port.ts";
import type { Handler } from "./requests.ts";

const echo: RequestListener = async (request, response) => {
  const body = await text(request).catch(() => undefined);
  if (body !== undefined) response.end(`${request.httpVersion} ${body.length}`);
};

/** Milliseconds: longer than any test. */
const never = 2 ** 30;

const started = (handler: Handler = echo, limits?: Partial<OnePortLimits>) => startOnePort(handler, limits);

function http2(url: string): ClientHttp2Session {
  const session = connectHttp2(url).on("error", () => {});
  onTestFinished(() => session.destroy());
  return session;
}
const post = (session: ClientHttp2Session) => session.request({ ":method": "POST" }).on("error", () => {});

function tcp(port: number): Socket {
  const socket = connectTcp(port, "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  return socket;
}
/** Resolves when it is closed, whether or not by an error. */
const closed = (emitter: Socket | ClientHttp2Session | ClientHttp2Stream | ClientRequest) =>
  new Promise<void>((resolve) => {
    if (emitter.destroyed) return resolve();
    emitter.once("close", () => resolve());
    if ("resume" in emitter) emitter.resume();
  });
const serverClosed = (server: Server) => closePort(server, never);

describe("one port", () => {
  test("speaks HTTP/1.1", async () => {
    const { url } = await started();
    const answer = await fetch(url, { method: "POST", body: "x".repeat(100_000) });
    expect(await answer.text()).toBe("1.1 100000");
  });

  test("speaks HTTP/2", async () => {
    const { url } = await started();
    expect(await text(post(http2(url)).end("x".repeat(100_000)))).toBe("2.0 100000");
  });

  test.each([
    "Connection: Upgrade\r\nUpgrade: h2c",
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
    "Upgrade: websocket",
  ])("serves nothing behind a request with %j, for Node drops a part of it", async (fields) => {
    const begun: string[] = [];
    const { port } = await started((request, response) => {
      begun.push(`${request.method} ${request.url}`);
      request.resume();
      response.end();
    });
    const socket = tcp(port);
    const hidden = "DELETE /hidden HTTP/1.1\r\nhost: a\r\n\r\n";
    socket.write(
      `GET /first HTTP/1.1\r\nhost: a\r\n${fields}\r\n\r\nPOST /second HTTP/1.1\r\nhost: a\r\ncontent-length: ${hidden.length}\r\n\r\n`,
    );
    socket.write(hidden);
    const answers = await text(socket);
    expect(answers.match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 200"]);
    expect(answers).toMatch(/connection: close/i);
    expect(begun).toEqual(["GET /first"]);
  });

  test.each(["HTTP/2.0", "HTTP/0.9", "HTTP/9.9"])("refuses %s in the form of HTTP/1.1", async (version) => {
    let begun = 0;
    const { port } = await started(() => void begun++);
    const socket = tcp(port).end(`GET / ${version}\r\nhost: a\r\n\r\n`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /);
    expect(begun).toBe(0);
  });

  test("refuses CONNECT", async () => {
    const { port } = await started();
    expect(await text(tcp(port).end("CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n"))).toMatch(/^HTTP\/1.1 400 /);
  });

  test.each(["CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n", "no HTTP\r\n\r\n", "GET / HTTP/2.0\r\nhost: a\r\n\r\n"])(
    "refuses what it can't serve behind the answers to what was sent before: %j",
    async (behind) => {
      const { port } = await started((_request, response) => void setTimeout(() => response.end(), 100));
      const socket = tcp(port);
      socket.write(`GET / HTTP/1.1\r\nhost: a\r\n\r\n${behind}`);
      const answers = await text(socket);
      expect(answers.match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 400"]);
    },
  );

  test.each([
    ["HTTP/1.1", "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok", "1.1 2"],
    // PUT and PATCH begin like the preface.
    ["HTTP/1.1, PUT", "PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", "1.1 0"],
    // An empty SETTINGS frame; the server's own settings come back.
    ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", "\x04"],
  ])("tells %s from single bytes", async (_, sent, expected) => {
    const { port } = await started();
    const socket = tcp(port).setNoDelay().setEncoding("latin1");
    for (const byte of sent) {
      socket.write(byte, "latin1");
      await sleep(1);
    }
    let answer = "";
    for await (const part of socket) {
      answer += part;
      if (answer.includes(expected)) break;
    }
    expect(answer).toContain(expected);
  });
});

describe("limits", () => {
  test.each([
    ["nothing", ""],
    ["the beginning of a preface", "PR"],
  ])("a connection that sends %s is closed", async (_, sent) => {
    const { port } = await started(echo, { sniffMs: 100 });
    await closed(
      tcp(port).on("connect", function (this: Socket) {
        this.write(sent);
      }),
    );
  });

  test("a connection that ends before it says anything is closed", async () => {
    const { port, server } = await started(echo, { sniffMs: never });
    const socket = connectTcp({ port, host: "127.0.0.1", allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    socket.end();
    await closed(socket.resume().on("end", () => socket.destroy()));
    await serverClosed(server);
  });

  test("an HTTP/2 connection whose client has ended its side is closed", async () => {
    const { port } = await started();
    const socket = connectTcp({ port, host: "127.0.0.1", allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    socket.end("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    await once(socket.resume(), "end");
  });

  test("is not looked for in HTTP/2 where a request has none: its answer may last", async () => {
    const answered = Promise.withResolvers<void>();
    const { url } = await started(
      (_, response) => {
        response.write("a");
        setTimeout(() => {
          response.end("b");
          answered.resolve();
        }, 400);
      },
      { requestMs: 100 },
    );
    const session = connectHttp2(url);
    onTestFinished(() => session.destroy());
    expect(await text(session.request({ ":path": "/" }))).toBe("ab");
    await answered.promise;
  });

  test("an HTTP/1.1 request that never ends is answered 408", async () => {
    const { port } = await started(echo, { requestMs: 100 });
    const socket = tcp(port);
    socket.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhalf");
    const answer = await text(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(answer).toMatch(/\r\nconnection: close\r\n/i);
  });

  test.each(["", "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhalf"])(
    "one behind a request whose answer takes longer is answered behind it: %j",
    async (begun) => {
      const { port } = await started(
        async ({ method }, response) => {
          if (method !== "GET") return;
          await sleep(400);
          response.end();
        },
        { requestMs: 100, sniffMs: 100 },
      );
      const socket = tcp(port);
      socket.write(`GET / HTTP/1.1\r\nhost: a\r\n\r\n${begun || "GET / HT"}`);
      expect((await text(socket)).match(/(?<=HTTP\/1\.1 )\d+/g)).toEqual(["200", "408"]);
    },
  );

  test("an HTTP/2 request that never ends is answered 408, its neighbours live", async () => {
    const { url } = await started(echo, { requestMs: 300 });
    const session = http2(url);
    const half = post(session);
    half.write("half");
    const [[headers], body] = await Promise.all([once(half, "response"), text(half)]);
    expect([headers[":status"], body]).toEqual([408, "The request did not arrive in time. Nothing was done.\n"]);
    await closed(half);
    expect(half.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
    expect(await text(post(session).end("whole"))).toBe("2.0 5");
  });

  test("nothing is done of an HTTP/2 request that is complete after it was told so", async () => {
    const done = vi.fn();
    const { url } = await started(
      async (request, response) => {
        if (request.method === "POST") await text(request).then(done, () => {});
        response.end("served");
      },
      { requestMs: 100 },
    );
    const session = http2(url);
    const half = post(session);
    half.write("half");
    await once(half, "response");
    half.end("whole");
    await closed(half.resume());
    expect(await text(session.request().end())).toBe("served");
    expect(done).not.toHaveBeenCalled();
  });

  test.each(["application/grpc", "application/grpc+proto"])("one of %s is reset", async (type) => {
    const { url } = await started(echo, { requestMs: 100 });
    const half = http2(url).request({ ":method": "POST", "content-type": type });
    half.write("half");
    await closed(half);
    expect(half.rstCode).toBe(constants.NGHTTP2_CANCEL);
  });

  test("an answer may take longer than its request", async () => {
    const { url } = await started(
      async (request, response) => {
        await text(request);
        await sleep(400);
        response.end("late");
      },
      { requestMs: 100 },
    );
    expect(await text(post(http2(url)).end("x"))).toBe("late");
  });

  test("an HTTP/2 connection without traffic is closed", async () => {
    const { url } = await started(echo, { idleMs: 100 });
    const session = http2(url);
    const goaway = once(session, "goaway");
    expect(await text(post(session).end())).toBe("2.0 0");
    expect((await goaway)[0]).toBe(constants.NGHTTP2_NO_ERROR);
    await closed(session);
  });

  test.each([
    ["closes", (session: ClientHttp2Session) => session.close()],
    ["breaks", (session: ClientHttp2Session) => session.destroy()],
  ])("nothing is kept of an HTTP/2 connection that its client %s", async (_, end) => {
    const sessions: WeakRef<object>[] = [];
    const { url } = await started(({ stream }: IncomingMessage & { stream?: Http2Stream }, response) => {
      sessions.push(new WeakRef(stream?.session as object));
      response.end();
    });
    for (let i = 0; i < 5; i++) {
      const session = http2(url);
      await text(post(session).end());
      end(session);
      await closed(session);
    }
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as () => void;
    const kept = async () => {
      await sleep(100);
      gc();
      return sessions.filter((session) => session.deref()).length;
    };
    // The last one may still be in the hands of the server.
    await expect.poll(kept).toBeLessThanOrEqual(1);
    expect(sessions.length).toBe(5);
  });

  test("HTTP/1.1 headers above the limit are answered 431", async () => {
    const { url } = await started();
    expect((await fetch(url, { headers: { x: "y".repeat(17 * 1024) } })).status).toBe(431);
  });

  test("HTTP/2 headers above the limit are answered 431", async () => {
    const { url } = await started();
    const session = http2(url);
    const [headers] = await once(session.request({ x: "y".repeat(17 * 1024) }), "response");
    expect(headers[":status"]).toBe(431);
    expect(await text(post(session).end())).toBe("2.0 0");
  });

  test("a connection is told how many requests it may have at a time", async () => {
    const { url } = await started();
    const session = http2(url);
    await once(session, "remoteSettings");
    expect(session.remoteSettings).toMatchObject({ maxConcurrentStreams: 100, maxHeaderListSize: 16 * 1024 });
  });
});

describe("closing", () => {
  /** Answers when `finish` is called. */
  function held() {
    const { promise: arrived, resolve } = Promise.withResolvers<ServerResponse>();
    const handler = (request: IncomingMessage, response: ServerResponse) => {
      request.resume();
      resolve(response);
    };
    return { handler, arrived };
  }

  test("finishes a running HTTP/2 request, then the connection ends", async () => {
    const { handler, arrived } = held();
    const { server, url } = await started(handler);
    const session = http2(url);
    const answer = text(post(session).end());
    const response = await arrived;
    const goaway = once(session, "goaway");
    const done = serverClosed(server);
    await goaway;
    response.end("finished");
    expect(await answer).toBe("finished");
    await Promise.all([done, closed(session)]);
  });

  test("once a close is announced the HTTP/2 clients that are there go, and those that come are served until it comes", async () => {
    const { server, url } = await started();
    const session = http2(url);
    expect(await text(post(session).end("x"))).toBe("2.0 1");
    announceClose(server);
    await closed(session);
    const late = http2(url);
    let told = false;
    late.on("goaway", () => (told = true));
    for (let i = 0; i < 20; i++) {
      expect(await text(post(late).end("x"))).toBe("2.0 1");
      await new Promise((acknowledged) => late.ping(acknowledged));
    }
    expect(told).toBe(false);
    await Promise.all([serverClosed(server), closed(late)]);
  });

  test("of what HTTP/2 clients ask without a pause, all that was begun is answered", async () => {
    let begun = 0;
    const { server, url } = await started((request, response) => {
      begun++;
      request.resume();
      response.end("answered");
    });
    let answered = 0;
    const sessions = Array.from({ length: 8 }, () => http2(url));
    const clients = sessions.flatMap((session) =>
      Array.from({ length: 10 }, async () => {
        while (!session.closed) if ((await text(post(session).end()).catch(() => "")) === "answered") answered++;
      }),
    );
    while (answered < 1000) await sleep(1);
    await Promise.all([serverClosed(server), ...clients, ...sessions.map(closed)]);
    expect(answered).toBe(begun);
  });

  test("a connection that was accepted and has said nothing yet is served once, or refused so that it may ask again", async () => {
    const { server, port } = await started();
    const accepted = (count: number) =>
      new Promise<void>((resolve) => server.on("connection", () => --count === 0 && resolve()));
    const both = accepted(2);
    const plain = tcp(port);
    const session = rawHttp2(port, { begins: false });
    await both;
    const done = serverClosed(server);
    // Both go to the system at once: whoever says nothing for longer is left.
    plain.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    session.send(PREFACE, settings(), headers(1));
    expect(await text(plain)).toMatch(/connection: close[\s\S]*1\.1 0/i);
    // No stream that it has opened was begun.
    const { payload } = await session.received(({ type }) => type === FrameType.GOAWAY);
    expect([payload.readUInt32BE(), payload.readUInt32BE(4)]).toEqual([0, constants.NGHTTP2_NO_ERROR]);
    await session.closed;
    await done;
  });

  test("finishes a running HTTP/1.1 request on a kept-alive connection, then that ends", async () => {
    const { handler, arrived } = held();
    const { server, url } = await started(handler);
    server.keepAliveTimeout = never;
    const answer = fetch(url);
    const response = await arrived;
    const done = serverClosed(server);
    response.end("finished");
    expect(await (await answer).text()).toBe("finished");
    await done;
  });

  test("a request that still comes on a kept-alive connection is answered, and is the last one there", async () => {
    const { handler, arrived } = held();
    const { server, port } = await started(handler);
    const socket = tcp(port);
    const answers = text(socket);
    socket.write("GET /1 HTTP/1.1\r\nhost: a\r\n\r\n");
    const response = await arrived;
    const done = serverClosed(server);
    server.on("request", (request, second) => request.url === "/2" && second.end("second"));
    const came = once(server, "request");
    socket.write("GET /2 HTTP/1.1\r\nhost: a\r\n\r\n");
    await came;
    response.end("first");
    expect(await answers).toMatch(/first[\s\S]*connection: close[\s\S]*second/i);
    await done;
  });

  test("a request that has arrived on an idle connection, and is not read yet, is answered, and is the last one there", async () => {
    const { server, port } = await started();
    const sockets = Array.from({ length: 20 }, () => tcp(port));
    const first = (socket: Socket) => once(socket.setEncoding("latin1"), "data");
    const answered = sockets.map(first);
    for (const socket of sockets) socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    await Promise.all(answered);
    const answers = sockets.map((socket) => text(socket));
    // Goes to the system at once. Nothing of it can be read before the server closes.
    for (const socket of sockets) socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    const done = serverClosed(server);
    for (const answer of await Promise.all(answers)) expect(answer).toMatch(/connection: close[\s\S]*1\.1 0/i);
    await done;
  });

  test("does not wait for connections that have said nothing", async () => {
    const { server, port } = await started(echo, { sniffMs: never });
    const socket = tcp(port);
    const accepted = once(server, "connection");
    await accepted;
    await Promise.all([serverClosed(server), closed(socket)]);
  });

  test("accepts nothing new", async () => {
    const { server, url } = await started();
    await serverClosed(server);
    await expect(fetch(url)).rejects.toThrow();
  });

  test("cuts off what runs when told to", async () => {
    const { handler, arrived } = held();
    const { server, url } = await started(handler);
    const session = http2(url);
    const stream = post(session).end();
    const request = http1Request(url)
      .on("error", () => {})
      .end();
    await arrived;
    const done = serverClosed(server);
    cutOff(server);
    await Promise.all([done, closed(stream), closed(request)]);
  });
});
