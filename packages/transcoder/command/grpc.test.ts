import { once } from "node:events";
import { createServer, type Http2Server, type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { create, type DescMethodUnary, type Message, toBinary } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { compressionGzip, connectNodeAdapter, createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, describe, expect, test } from "vitest";
import { compileProtos } from "../fixtures/compile.ts";
import { grpcTransport } from "./grpc.ts";

const registry = compileProtos({
  "echo.proto": `syntax = "proto3"; package echo.v1;
    service Echo { rpc Say(Words) returns (Words); }
    message Words { string text = 1; bytes data = 2; }`,
});
const service = registry.getService("echo.v1.Echo");
if (!service) throw new Error("there is no service");
const method = service.method.say as DescMethodUnary;
const Words = method.input;

function words(text: string, data?: Uint8Array): Message {
  const message = reflect(Words);
  message.set(message.desc.field.text as never, text);
  if (data) message.set(message.desc.field.data as never, data);
  return message.message;
}
const said = (message: Message) => message as unknown as { text: string; data: Uint8Array };

const open: Http2Server[] = [];
afterEach(() => {
  for (const server of open.splice(0)) server.close();
});
async function listening(server: Http2Server): Promise<string> {
  open.push(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A service that does what it is told by the text. */
const serve = (acceptCompression = [compressionGzip]) =>
  listening(
    createServer(
      connectNodeAdapter({
        acceptCompression,
        compressMinBytes: 1,
        routes: (router) =>
          router.service(service, {
            async say(
              request: Message,
              context: {
                responseHeader: Headers;
                responseTrailer: Headers;
                signal: AbortSignal;
                requestHeader: Headers;
              },
            ) {
              const { text } = said(request);
              context.responseHeader.set("x-a", "1");
              context.responseTrailer.set("x-b-bin", "AAE");
              if (text === "fail")
                throw new ConnectError("no \u00fc", Code.NotFound, { "x-c": "2" }, [
                  { desc: DurationSchema, value: { seconds: 5n } },
                ]);
              if (text === "wait") await once(context.signal, "abort");
              if (text === "large") return words("x".repeat(2000));
              if (text === "headers")
                return words(JSON.stringify(["x-call", "grpc-timeout"].map((name) => context.requestHeader.get(name))));
              return request;
            },
          } as never),
      }),
    ),
  );

const LIMIT = 1000;
const both = (baseUrl: string): [string, Transport][] => [
  ["here", grpcTransport({ baseUrl, readMaxBytes: LIMIT })],
  ["connect-node", createGrpcTransport({ baseUrl, readMaxBytes: LIMIT })],
];

async function outcome(transport: Transport, message: Message, signal?: AbortSignal, timeoutMs?: number) {
  try {
    const answer = await transport.unary(method, signal, timeoutMs, { "x-call": "z" }, message as never);
    const { message: got, header, trailer } = answer;
    return { text: said(got).text, data: said(got).data, a: header.get("x-a"), b: trailer.get("x-b-bin") };
  } catch (error) {
    const { code, rawMessage, metadata, details } = error as ConnectError;
    return { code: Code[code], message: rawMessage, c: metadata.get("x-c"), a: metadata.get("x-a"), details };
  }
}

const same = async (baseUrl: string, message: Message, timeoutMs?: number) => {
  const [here, there] = await Promise.all(
    both(baseUrl).map(([, transport]) => outcome(transport, message, undefined, timeoutMs)),
  );
  expect(here).toEqual(there);
  return here;
};

describe("a call has the outcome that connect-node's client has", () => {
  test.each(["hello", "", "headers"])("%j", async (text) => {
    expect(await same(await serve(), words(text))).toMatchObject({ a: "1", b: "AAE" });
  });
  test("bytes", async () => {
    expect(await same(await serve(), words("", Uint8Array.of(1, 2)))).toMatchObject({ text: "" });
  });
  test("an error with its details and metadata", async () => {
    expect(await same(await serve(), words("fail"))).toMatchObject({
      code: "NotFound",
      message: "no ü",
      c: "2",
      details: [{}],
    });
  });
  test("an answer that is too large", async () => {
    expect(await same(await serve([]), words("large"))).toMatchObject({ code: "ResourceExhausted" });
  });
  test("a deadline", async () => {
    expect(await same(await serve(), words("wait"), 50)).toMatchObject({ code: "DeadlineExceeded" });
    expect(await same(await serve(), words("headers"), 5000)).toMatchObject({ text: '["z","5000m"]' });
  });
  test("nobody listens", async () => {
    expect(await same("http://127.0.0.1:1", words(""))).toMatchObject({ code: "Unavailable" });
  });
});

/** A server that answers each stream in its own way, beside HTTP/2. */
const oddly = (answer: (stream: ServerHttp2Stream) => void) => {
  const server = createServer();
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => {});
    stream.resume();
    answer(stream);
  });
  return listening(server);
};
function answered(stream: ServerHttp2Stream, headers: OutgoingHttpHeaders, body: string | Buffer): void {
  stream.respond(headers);
  stream.end(body);
}
const GRPC = { ":status": 200, "content-type": "application/grpc" };
const framed = (message: Message, flag = 0) => {
  const bytes = toBinary(Words, create(Words, message as never));
  return Buffer.from([flag, 0, 0, 0, bytes.length, ...bytes]);
};
const withTrailers = (stream: ServerHttp2Stream, parts: readonly Buffer[], trailers: Record<string, string>) => {
  stream.respond(GRPC, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  for (const part of parts) stream.write(part);
  stream.end();
};

describe("an odd answer is read as connect-node reads it", () => {
  test.each<[string, (stream: ServerHttp2Stream) => void]>([
    ["another status", (stream) => answered(stream, { ":status": 503 }, "away")],
    ["another type", (stream) => answered(stream, { ":status": 200, "content-type": "text/html" }, "hello")],
    [
      "trailers alone",
      (stream) => stream.respond({ ...GRPC, "grpc-status": "7", "grpc-message": "no%20way" }, { endStream: true }),
    ],
    ["no trailers", (stream) => answered(stream, GRPC, framed(words("x")))],
    ["no message", (stream) => withTrailers(stream, [], { "grpc-status": "0" })],
    [
      "two messages",
      (stream) => withTrailers(stream, [framed(words("x")), framed(words("y"))], { "grpc-status": "0" }),
    ],
    ["half a message", (stream) => withTrailers(stream, [framed(words("x")).subarray(0, 6)], { "grpc-status": "0" })],
    [
      "in pieces",
      (stream) =>
        withTrailers(stream, [framed(words("x")).subarray(0, 3), framed(words("x")).subarray(3)], {
          "grpc-status": "0",
        }),
    ],
    ["a message before an error", (stream) => withTrailers(stream, [framed(words("x"))], { "grpc-status": "9" })],
    [
      "a message that is none",
      (stream) => withTrailers(stream, [Buffer.from([0, 0, 0, 0, 1, 255])], { "grpc-status": "0" }),
    ],
  ])("%s", async (_, answer) => {
    await same(await oddly(answer), words("x"));
  });
});

test.each([
  [8, "Canceled"],
  [7, "Unavailable"],
  [11, "ResourceExhausted"],
  [2, "Internal"],
])("a reset with %i is %s", async (code, expected) => {
  const url = await oddly((stream) => stream.close(code));
  expect(await outcome(grpcTransport({ baseUrl: url, readMaxBytes: LIMIT }), words(""))).toMatchObject({
    code: expected,
  });
});

test("who cancels ends the call at the service, also before it is sent", async () => {
  const closed = Promise.withResolvers<number>();
  const url = await oddly((stream) => stream.on("close", () => closed.resolve(stream.rstCode)));
  const transport = grpcTransport({ baseUrl: url, readMaxBytes: LIMIT });
  expect(await outcome(transport, words(""), AbortSignal.abort())).toMatchObject({ code: "Canceled" });
  const caller = new AbortController();
  setTimeout(() => caller.abort(), 100);
  expect(await outcome(transport, words(""), caller.signal)).toMatchObject({ code: "Canceled" });
  expect(await closed.promise).toBe(8);
});

test("answers come while more than ten megabytes wait to be sent", async () => {
  let count = 0;
  const server = createServer();
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => {});
    if (++count <= 5) stream.pause();
    else withTrailers(stream.resume(), [framed(words("x"))], { "grpc-status": "0" });
  });
  const transport = grpcTransport({ baseUrl: await listening(server), readMaxBytes: LIMIT });
  const caller = new AbortController();
  const upload = words("", new Uint8Array(3 << 20));
  const uploads = Array.from({ length: 5 }, () => outcome(transport, upload, caller.signal));
  await expect.poll(() => count).toBe(5);
  expect(await outcome(transport, words("x"))).toMatchObject({ text: "x" });
  caller.abort();
  await Promise.all(uploads);
});

test("a header that the caller may set is the caller's", async () => {
  const agents: unknown[] = [];
  const server = createServer();
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    agents.push(headers["user-agent"]);
    withTrailers(stream.resume(), [framed(words("x"))], { "grpc-status": "0" });
  });
  const transport = grpcTransport({ baseUrl: await listening(server), readMaxBytes: LIMIT });
  for (const given of [{ "user-agent": "mine" }, undefined])
    await transport.unary(method, undefined, undefined, given, words("x") as never);
  expect(agents).toEqual(["mine", "connect-transcoder"]);
});

test("a connection that breaks is UNAVAILABLE, and no cancellation of the caller's", async () => {
  const server = createServer();
  const sockets: Socket[] = [];
  server.on("connection", (socket: Socket) => void sockets.push(socket));
  server.on("sessionError", () => {});
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => {});
    for (const socket of sockets) socket.end();
  });
  const transport = grpcTransport({ baseUrl: await listening(server), readMaxBytes: LIMIT });
  expect(await outcome(transport, words(""))).toMatchObject({ code: "Unavailable" });
});

test("a stream that the service leaves open when it has answered is closed", async () => {
  const frame = (type: number, flags: number, id: number, payload = Buffer.alloc(0)) =>
    Buffer.from([0, 0, payload.length, type, flags, 0, 0, 0, id, ...payload]);
  const literal = (text: string) => [text.length, ...Buffer.from(text)];
  const fields = Object.entries({ ":status": "200", "content-type": "application/grpc", "grpc-status": "7" });
  const block = Buffer.from(fields.flatMap(([name, value]) => [0, ...literal(name), ...literal(value)]));
  const [SETTINGS, HEADERS, RESET] = [4, 1, 3];
  const reset = Promise.withResolvers<void>();
  const server = createTcpServer((socket) => {
    socket.on("error", () => {});
    socket.write(Buffer.concat([frame(SETTINGS, 0, 0), frame(SETTINGS, 1, 0)]));
    let received: Buffer = Buffer.alloc(0);
    let at = 24; // behind the preface
    socket.on("data", (piece: Buffer) => {
      received = Buffer.concat([received, piece]);
      while (received.length >= at + 9) {
        const type = received[at + 3];
        // Its own headers are the last of the answer. It reads no body, and no window is opened for one.
        if (type === HEADERS) socket.write(frame(HEADERS, 5, received.readUInt32BE(at + 5), block));
        if (type === RESET) reset.resolve();
        at += 9 + received.readUIntBE(at, 3);
      }
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const transport = grpcTransport({ baseUrl, readMaxBytes: LIMIT });
  expect(await outcome(transport, words("", new Uint8Array(1 << 20)))).toMatchObject({ code: "PermissionDenied" });
  await reset.promise;
  server.close();
});

test("an answer without end is read no further than a message may be long", async () => {
  let sent = 0;
  const closed = Promise.withResolvers<number>();
  const url = await oddly((stream) => {
    stream.respond(GRPC);
    const more = () => {
      sent += 100;
      if (!stream.destroyed) stream.write(Buffer.alloc(100, 1), more);
    };
    stream.on("close", () => closed.resolve(stream.rstCode));
    more();
  });
  const transport = grpcTransport({ baseUrl: url, readMaxBytes: LIMIT });
  expect(await outcome(transport, words(""))).toMatchObject({ code: "ResourceExhausted" });
  expect(await closed.promise).toBe(8);
  expect(sent).toBeLessThan(1_000_000);
});
