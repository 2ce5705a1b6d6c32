/** What an error tells about a call, and what a server's end does to its callers, found out on real connections. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import {
  type ClientHttp2Stream,
  constants,
  createServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { realTime } from "@petstore/runtime/clock";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { errors } from "../../../processes/errors.ts";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { hasIpv6 } from "../fixtures/ipv6.ts";
import { limitCalls } from "../link/client.ts";
import { neverRan } from "./failed-call.ts";
import { createServiceTransport } from "./pipeline.ts";
import { openReplica } from "./replica.ts";

const stack: (() => unknown)[] = [];
afterEach(async () => {
  while (stack.length > 0) await stack.pop()?.();
});

/** A replica whose server does this with every stream. */
async function before(serve: (stream: ServerHttp2Stream, session: ServerHttp2Session) => void) {
  const server = createServer();
  server.on("session", (session) => {
    stack.push(() => session.destroy());
    session.on("stream", (stream) => {
      stream.on("error", () => {});
      serve(stream, session);
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  stack.push(() => server.close());
  return open(port);
}
function open(port: number, link = false, host = "127.0.0.1") {
  const replica = openReplica(`http://${host}:${port}`, {
    secret: "a secret that nobody asks for",
    limit: limitCalls(errors),
    ...realTime,
    link,
  });
  stack.push(() => replica.close());
  return replica;
}

/** Two calls of one tick, and then one by itself. */
async function failures({ transport }: ReturnType<typeof open>): Promise<ConnectError[]> {
  const client = createClient(CategoryService, transport);
  const call = () =>
    client.getCategory({ categoryId: 1n }).then(() => expect.fail("it was answered"), ConnectError.from);
  return [...(await Promise.all([call(), call()])), await call()];
}

test("a call for which there is no connection never ran", async () => {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  const replica = open(port);
  expect((await failures(replica)).map(neverRan)).toEqual([true, true, true]);
  expect([await replica.isServing(), await replica.isSilent()]).toEqual([false, false]);
});

test("a connection that nobody completes is given up, and another one is opened", { timeout: 60_000 }, async () => {
  const begun: Socket[] = [];
  // It takes the connection and says nothing, as a machine that went down in the middle of a TLS handshake.
  const server = createTcpServer((socket) => begun.push(socket.on("error", () => {})));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  stack.push(() => server.close());
  const replica = openReplica(`https://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    limit: limitCalls(errors),
    ...realTime,
    link: false,
  });
  stack.push(() => replica.close());
  for (const failure of await failures(replica)) {
    expect(failure.rawMessage).toContain("it took longer than 3 s to connect");
    expect(neverRan(failure)).toBe(true);
  }
  expect(begun.length).toBe(2);
});

test("one that takes calls and answers nothing is silent: it is found out once, and others needn't wait for it", {
  timeout: 60_000,
}, async () => {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => sockets.push(socket.on("error", () => {})));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  stack.push(() => server.close());
  stack.push(() => sockets.map((socket) => socket.destroy()));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const transport = createServiceTransport({ urls: [url], secret: "", errors, ...realTime });
  stack.push(() => transport.close());
  const client = createClient(CategoryService, transport);
  const call = () => client.getCategory({ categoryId: 1n }, { timeoutMs: 50_000 }).catch(ConnectError.from);
  for (const failure of await Promise.all([call(), call(), call()]))
    expect(failure).toMatchObject({ code: Code.Unavailable });
  expect(await call()).toMatchObject({ rawMessage: "CategoryService does not answer now. Try again in a second." });
  expect(await transport.replicas()[0]?.isSilent()).toBe(true);
});

test("no call is forgotten while a connection is lost that was being verified", { timeout: 60_000 }, async () => {
  const sessions: ServerHttp2Session[] = [];
  const replica = await before((stream, session) => {
    sessions.push(session);
    stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "12" }, { endStream: true });
  });
  expect(await replica.isSilent()).toBe(false);
  // No health check is given up for its time, of which a busy machine may need more: one that is forgotten has no end.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const now = Date.now;
  vi.spyOn(Date, "now").mockImplementation(() => now() + 60_000);
  onTestFinished(() => void vi.restoreAllMocks());
  const silent = [replica.isSilent()];
  sessions[0]?.destroy();
  // Some of them find the connection destroyed, and not yet closed.
  for (let turn = 0; turn < 200; turn++) {
    silent.push(replica.isSilent());
    await new Promise((done) => (turn % 2 === 0 ? process.nextTick(done, undefined) : setImmediate(done)));
  }
  expect(await Promise.all(silent)).not.toContain(true);
});

test.skipIf(!hasIpv6)("a call names an IPv6 address in brackets, with a link and without", async () => {
  const named: (string | undefined)[] = [];
  const server = createServer().on("stream", (stream, headers) => {
    named.push(headers[":authority"]);
    stream.on("error", () => {}).close(constants.NGHTTP2_REFUSED_STREAM);
  });
  server.on("session", (session) => stack.push(() => session.destroy()));
  await new Promise<void>((done) => server.listen(0, "::1", done));
  stack.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  for (const link of [true, false]) {
    await failures(open(port, link, "[::1]"));
    expect(new Set(named.splice(0))).toEqual(new Set([`[::1]:${port}`]));
  }
});

test("a call on a stream that the server refused never ran", async () => {
  const replica = await before((stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM));
  expect((await failures(replica)).map(neverRan)).toEqual([true, true, true]);
});

test("a call that the server's GOAWAY leaves out never ran", async () => {
  // Stream 1 is the last that it knows of; the answer to it never comes.
  const replica = await before((stream, session) => {
    if (stream.id === 1) session.goaway(constants.NGHTTP2_NO_ERROR, 1);
  });
  const client = createClient(CategoryService, replica.transport);
  const aborter = new AbortController();
  const first = client.getCategory({ categoryId: 1n }, { signal: aborter.signal }).catch(ConnectError.from);
  await new Promise((done) => setImmediate(done));
  await new Promise((done) => setImmediate(done));
  // Sent before the GOAWAY has arrived.
  const second = client.getCategory({ categoryId: 2n }).catch(ConnectError.from);
  expect(neverRan((await second) as ConnectError)).toBe(true);
  aborter.abort();
  expect(neverRan((await first) as ConnectError)).toBe(false);
});

test.each([
  ["reset", (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR)],
  ["cancelled", (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_CANCEL)],
  ["cut off", (_: ServerHttp2Stream, session: ServerHttp2Session) => session.socket.destroy()],
])("of a call that was %s nobody knows", async (_, serve) => {
  const replica = await before(serve);
  expect((await failures(replica)).map(neverRan)).toEqual([false, false, false]);
});

test("a call that is made while a connection ends by a GOAWAY gets another connection", async () => {
  let streams = 0;
  const replica = await before((stream, session) => {
    streams++;
    // Trailers only: an answer is not what this is about.
    stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "5" }, { endStream: true });
    stream.once("close", () => session.goaway());
  });
  const call = () =>
    createClient(CategoryService, replica.transport).getCategory({ categoryId: 1n }).catch(ConnectError.from);
  let second: ReturnType<typeof call> | undefined;
  const followGoaway = (message: unknown) => {
    const { stream } = message as { stream: ClientHttp2Stream };
    stream.session?.once("goaway", () => (second ??= call()));
  };
  subscribe("http2.client.stream.created", followGoaway);
  stack.push(() => unsubscribe("http2.client.stream.created", followGoaway));
  expect(await call()).toMatchObject({ code: Code.NotFound });
  // What would end the process comes with the connection's last events, not with an answer.
  while (!second || streams < 2) await new Promise((done) => setImmediate(done));
  expect(await second).toMatchObject({ code: Code.NotFound });
});

test("when a connection has hardly any number for another stream, another one is opened", async () => {
  const sessions = new Set<ServerHttp2Session>();
  const replica = await before((stream, session) => {
    sessions.add(session);
    stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "5" }, { endStream: true });
  });
  let isFirst = true;
  const skipNumbers = (message: unknown) => {
    const { session } = (message as { stream: { session: { setNextStreamID(id: number): void } } }).stream;
    if (isFirst) session.setNextStreamID(2 ** 31 - 5);
    isFirst = false;
  };
  subscribe("http2.client.stream.created", skipNumbers);
  stack.push(() => unsubscribe("http2.client.stream.created", skipNumbers));
  const found = [...(await failures(replica)), ...(await failures(replica))];
  expect(found.map(({ code }) => code)).toEqual(Array(6).fill(Code.NotFound));
  expect(sessions.size).toBe(2);
});
