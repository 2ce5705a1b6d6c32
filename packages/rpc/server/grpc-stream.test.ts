/** A stream in binary gRPC is served past Connect, and nobody can tell: each answer is compared with Connect's own. */
import { once } from "node:events";
import { createServer as createHttp1, type IncomingMessage, request as requestHttp1 } from "node:http";
import { connect, createServer as createHttp2 } from "node:http2";
import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createConnectRouter, createContextValues } from "@connectrpc/connect";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { errors } from "../../../processes/errors.ts";
import { DomainError } from "../domain-error.ts";
import { NOT_BEGUN, outOfTime } from "../errors.ts";
import { envelope } from "../fixtures/envelope.ts";
import { startTicker, TickerService, WATCH_PATH, type Watch } from "../fixtures/ticker.ts";
import { MAX_MESSAGE_BYTES } from "../http/limits.ts";
import { knownFields, limitedCompressions } from "./connect.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { envelopeOf } from "./grpc-stream.ts";
import { limitCall } from "./message-limit.ts";

type Fields = Readonly<Record<string, string>>;
interface Asked {
  readonly headers?: Fields;
  readonly method?: string;
  readonly body?: Uint8Array;
}

const { input } = TickerService.method.watch;
const encoded = (text: string) => toBinary(input, create(input, { text }));
const ONE = envelope(encoded("a"));
const LARGE = "x".repeat(2000);

/** Says what it was asked for, and what its caller had said. */
const echo: Watch = async function* ({ text }) {
  yield { text };
  yield { text: `${text}, again` };
};
/** Says which fields it was sent that it does not know. */
const unknown: Watch = async function* ({ $unknown = [] }) {
  yield { text: `${$unknown.length} unknown` };
};
const large: Watch = async function* () {
  yield { text: LARGE };
  yield { text: "small" };
  yield { text: LARGE };
};

/** The same methods behind Connect alone, as every other protocol is served. */
async function startConnects(dispatcher: Dispatcher, protocol: Protocol): Promise<string> {
  const router = createConnectRouter({
    readMaxBytes: MAX_MESSAGE_BYTES,
    writeMaxBytes: MAX_MESSAGE_BYTES,
    acceptCompression: limitedCompressions(errors),
    binaryOptions: knownFields,
    requestGate: async ({ method, requestHeader }) => {
      dispatcher.shed(method, requestHeader);
      if (dispatcher.asksCallers) await dispatcher.admit(method, requestHeader);
    },
  });
  dispatcher.routes(router);
  const handler = router.handlers.find(({ requestPath }) => requestPath === WATCH_PATH);
  if (!handler) return expect.fail("no handler");
  const serve: Parameters<typeof createHttp1>[1] = async (request, response) => {
    const values = createContextValues();
    const call = universalRequestFromNodeRequest(request, response, undefined, values);
    const answer = await handler(limitCall(call, request, handler.method, MAX_MESSAGE_BYTES, errors));
    await universalResponseToNodeResponse(answer, response);
  };
  const server = protocol === "HTTP/2" ? createHttp2(serve as never) : createHttp1(serve);
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

type Protocol = "HTTP/1.1" | "HTTP/2";

async function ask(url: string, protocol: Protocol, { headers, method = "POST", body = ONE }: Asked) {
  const fields = { "content-type": "application/grpc+proto", "x-request-id": "one", ...headers };
  if (protocol === "HTTP/1.1") {
    const request = requestHttp1(url + WATCH_PATH, { method, headers: fields, agent: false }).end(body);
    const [response] = (await once(request, "response")) as [IncomingMessage];
    const bytes = await buffer(response);
    return answerOf({ ":status": response.statusCode, ...response.headers }, bytes, response.trailers);
  }
  const session = connect(url);
  onTestFinished(() => session.destroy());
  const stream = session.request({ ":method": method, ":path": WATCH_PATH, ...fields });
  stream.end(method === "GET" ? undefined : body);
  let trailers: object = {};
  stream.on("trailers", (all) => {
    trailers = all;
  });
  const closed = new AbortController();
  stream.on("close", () => closed.abort());
  const [answered] = await once(stream, "response", closed);
  const bytes = await buffer(stream as Readable);
  session.close();
  return answerOf(answered, bytes, trailers);
}

/** What a client goes by. Compressed messages are unpacked: how they are written may differ. */
function answerOf(headers: object, bytes: Buffer, trailers: object) {
  const {
    date: _,
    "x-content-type-options": __,
    connection: ___,
    "keep-alive": ____,
    "grpc-accept-encoding": _____, // which Connect drops
    ...all
  } = { ...headers } as Fields;
  const messages: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [flags, length] = [bytes.readUInt8(at), bytes.readUInt32BE(at + 1)];
    const message = bytes.subarray(at + 5, at + 5 + length);
    const unpack = all["grpc-encoding"] === "br" ? brotliDecompressSync : gunzipSync;
    messages.push(`${flags} ${(flags === 1 ? unpack(message) : message).toString("latin1")}`);
    at += 5 + length;
  }
  return { headers: all, messages, trailers: { ...trailers } as Fields };
}

const type = (type: string): Asked => ({ headers: { "content-type": type } });
const timeout = (value: string): Asked => ({ headers: { "grpc-timeout": value } });
const encoding = (name: string, body?: Uint8Array): Asked => ({
  headers: { "grpc-encoding": name },
  ...(body && { body }),
});
const accepting = (names: string): Asked => ({ headers: { "grpc-accept-encoding": names } });
const sent = (body: Uint8Array): Asked => ({ body });

const requests: readonly [string, Asked, Watch?][] = [
  ["a message", {}],
  ["a message with a field that nobody knows", sent(envelope(Buffer.from([0xfa, 0xf0, 4, 1, 7]))), unknown],
  ["a message without fields", sent(envelope(encoded("")))],
  ["a message in pieces of the protocol that end nothing", sent(Buffer.concat([ONE.subarray(0, 5), ONE.subarray(5)]))],
  ["the short content type", type("application/grpc")],
  ["a content type in capitals", type("Application/GRPC+Proto")],
  ["JSON", { ...type("application/grpc+json"), body: envelope(Buffer.from('{"text":"a"}')) }],
  ["two messages", sent(Buffer.concat([ONE, ONE]))],
  ["no message", sent(Buffer.alloc(0))],
  ["half of a message's head", sent(ONE.subarray(0, 3))],
  ["half of a message", sent(ONE.subarray(0, 6))],
  ["half of a second message", sent(Buffer.concat([ONE, ONE.subarray(0, 6)]))],
  ["what is no message", sent(envelope(Buffer.from([0xff, 0xff])))],
  ["a message that is too large", sent(envelope(encoded("x".repeat(2 * MAX_MESSAGE_BYTES))))],
  [
    "a message that is too large when unpacked",
    encoding("gzip", envelope(gzipSync(Buffer.alloc(2 ** 21)), { flags: 1 })),
  ],
  ["a packed message", encoding("gzip", envelope(gzipSync(encoded("packed")), { flags: 1 }))],
  ["another packing", encoding("br", envelope(brotliCompressSync(encoded("packed")), { flags: 1 }))],
  ["a message that is not packed, although it may be", encoding("gzip")],
  ["what was not packed so", encoding("gzip", envelope(encoded("packed"), { flags: 1 }))],
  ["a packed message that does not say how", sent(envelope(gzipSync(encoded("packed")), { flags: 1 }))],
  ["no packing, by name", encoding("identity")],
  ["a packing that nobody knows", encoding("zip")],
  ["a packing with a long name", encoding("z".repeat(900))],
  ["who takes packed answers", accepting("zip, br, gzip"), large],
  ["who takes no packed answers", accepting("zip"), large],
  ["who packs and says nothing of answers", encoding("gzip"), large],
  ["a time that is none", timeout("soon")],
  ["a time that is too long to read", timeout("999999999S")],
  ["a time without a unit", timeout("10")],
  ["a long time", timeout("99999999H")],
];

const fails = (error: unknown): Watch =>
  async function* () {
    yield* [];
    throw error;
  };
const failsLater = (error: unknown): Watch =>
  async function* () {
    yield { text: "first" };
    throw error;
  };
const notFound = new DomainError("PET_NOT_FOUND", "There is no pet 1 – nowhere.", { metadata: { pet: "1" } });
const answers: readonly [string, Watch][] = [
  ["no message", async function* () {}],
  [
    "a message that has no fields",
    async function* () {
      yield {};
    },
  ],
  [
    "headers",
    async function* (_, { responseHeaders }) {
      responseHeaders.set("x-told", "one");
      responseHeaders.append("x-told", "two");
      yield { text: "a" };
    },
  ],
  [
    "headers that come too late",
    async function* (_, { responseHeaders }) {
      yield { text: "a" };
      responseHeaders.set("x-told", "one");
      yield { text: "b" };
    },
  ],
  [
    "headers and an error",
    async function* (_, { responseHeaders }) {
      responseHeaders.set("x-told", "one");
      yield* [];
      throw notFound;
    },
  ],
  ["an error", fails(notFound)],
  ["an error after a message", failsLater(notFound)],
  ["an error that nobody foresaw", fails(new Error("a bug"))],
  ["an error that nobody foresaw, after a message", failsLater(new Error("a bug"))],
  ["an error of another service", fails(new ConnectError("elsewhere", Code.NotFound))],
  ["nothing, but throws no error", fails(undefined)],
  [
    "a message that is too large",
    async function* () {
      yield { text: "x".repeat(MAX_MESSAGE_BYTES) };
    },
  ],
  [
    "something that is no message",
    async function* () {
      yield { text: 1 } as never;
    },
  ],
];

describe.each(["HTTP/1.1", "HTTP/2"] as const)("over %s", (protocol) => {
  async function both(watch: Watch, asked: Asked = {}, of: Partial<Dispatcher> = {}) {
    const { url, dispatcher } = await startTicker(watch, {}, of);
    const connects = await startConnects({ ...dispatcher, ...of }, protocol);
    return { ours: await ask(url, protocol, asked), connects: await ask(connects, protocol, asked) };
  }

  test.each(requests)("%s is answered as by Connect", async (_, asked, watch = echo) => {
    const { ours, connects } = await both(watch, asked);
    expect(ours).toEqual(connects);
  });

  test("no time at all is answered as by Connect, in words that depend on whether a millisecond has passed", async () => {
    const { ours, connects } = await both(echo, timeout("0m"));
    const withoutWords = ({ trailers, ...answer }: typeof ours) => {
      const { "grpc-message": words, "grpc-status-details-bin": details, ...others } = trailers;
      expect([NOT_BEGUN, outOfTime(false)].map(encodeURIComponent)).toContain(words);
      expect(Buffer.from(`${details}`, "base64").includes("DEADLINE_EXCEEDED")).toBe(true);
      return { ...answer, trailers: others };
    };
    expect(withoutWords(ours)).toEqual(withoutWords(connects));
    expect(ours.trailers["grpc-status"]).toBe("4");
  });

  test.each(answers)("a handler that gives %s is answered for as by Connect", async (_, watch) => {
    const { ours, connects } = await both(watch);
    expect(ours).toEqual(connects);
  });

  test("half of a surrogate pair, which Connect fails to write, is written as what can be", async () => {
    const { url } = await startTicker(fails(new DomainError("PET_NOT_FOUND", "There is no pet \ud800.")));
    const { trailers } = await ask(url, protocol, {});
    expect(trailers["grpc-message"]).toBe(encodeURIComponent("There is no pet \ufffd."));
  });

  test("what can't be sent is given up, and nobody else", async () => {
    const { url } = await startTicker(echo, {}, { stream: refuse(() => unwritable()) });
    const one = async () => ask(url, protocol, {});
    await expect(one()).rejects.toThrow();
    await expect(one()).rejects.toThrow();
  });

  test("who has no more time is told so as by Connect", async () => {
    const { ours, connects } = await both(async function* () {
      yield { text: "a" };
      await new Promise(() => {});
    }, timeout("2S")); // both have to begin in it, on a busy machine too
    expect(ours.trailers["grpc-status"]).toBe(`${Code.DeadlineExceeded}`);
    expect(ours).toEqual(connects);
  });

  test.each([
    ["there is no room", { shed: refuse(() => errors.rpcError("OVERLOADED", "full")) }],
    [
      "may not call",
      { asksCallers: true, admit: async () => refuse(() => errors.rpcError("UNAUTHENTICATED", "who?"))() },
    ],
  ] as const)("who is not let in, for %s, is told so as by Connect, and nothing is done", async (_, of) => {
    const watch = vi.fn(echo);
    // Also where the message is wrong: nobody looks at it.
    const { ours, connects } = await both(watch, sent(ONE.subarray(0, 3)), of as never);
    expect([Code.Unavailable, Code.ResourceExhausted, Code.Unauthenticated].map(String)).toContain(
      ours.trailers["grpc-status"],
    );
    expect(ours).toEqual(connects);
    expect(watch).not.toHaveBeenCalled();
  });
});

/** An error whose metadata are no header. */
function unwritable(): ConnectError {
  const error = new ConnectError("odd", Code.Aborted);
  return Object.assign(error, { metadata: new Map([["\n", "\n"]]) });
}

test("a message that many are told is encoded once", () => {
  const serialize = vi.fn(encoded);
  const message = create(input, { text: "a" });
  const [one, other] = [1, 2].map(() => envelopeOf(message, ({ text }) => serialize(text)));
  expect(one).toBe(other);
  expect(Buffer.from(one as Uint8Array)).toEqual(ONE);
  expect(serialize).toHaveBeenCalledOnce();
});

test("it is Connect's in every protocol but that one", async () => {
  const { dispatcher } = await startTicker(echo);
  const stream = vi.fn(dispatcher.stream);
  const { url } = await startTicker(echo, {}, { stream });
  for (const content of ["application/grpc+json", "application/grpc-web+proto", "application/connect+proto"])
    await ask(url, "HTTP/2", { ...type(content), body: envelope(Buffer.from("{}")) });
  expect(stream).not.toHaveBeenCalled();
  await ask(url, "HTTP/2", {});
  expect(stream).toHaveBeenCalledOnce();
});

function refuse(error: () => Error): () => never {
  return () => {
    throw error();
  };
}
