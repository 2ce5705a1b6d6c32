/** The RPC server over real ports, with every protocol. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { compressionGzip, createGrpcTransport } from "@connectrpc/connect-node";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import { listenAdvice } from "../../../processes/listen-advice.ts";
import {
  CategoryService,
  type CreateCategoryRequest,
  CreateCategoryRequestSchema,
} from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { startCategories, transports } from "../fixtures/categories.ts";
import { envelope } from "../fixtures/envelope.ts";
import { END_HEADERS, type Field, FrameType, frame, headers, rawHttp2 } from "../fixtures/frames.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/health/v1/health_pb.ts";
import { defaultLimits, MAX_MESSAGE_BYTES, type OnePortLimits } from "../http/limits.ts";
import { REQUEST_BYTES } from "../http/request-budget.ts";
import { createDispatcher } from "./dispatcher.ts";
import { createHealth } from "./health.ts";
import { createListener, type ListenerOptions, type RpcServer, startRpcServer } from "./server.ts";

let handle: (name: string, request: CreateCategoryRequest) => Promise<string>;
beforeEach(() => {
  handle = async (name) => name.slice(0, 10);
});
const started = (limits?: OnePortLimits) => startCategories((...call) => handle(...call), limits);

describe.each(transports)("%s", (_, transport) => {
  const call = (server: RpcServer, name: string) =>
    createClient(CategoryService, transport(server.url)).createCategory({ category: { name } });

  test("is served", async () => {
    expect((await call(await started(), "dog")).category?.name).toBe("dog");
  });

  test("takes messages up to the limit", async () => {
    const almost = "x".repeat(MAX_MESSAGE_BYTES - 100);
    expect((await call(await started(), almost)).category?.name).toBe("xxxxxxxxxx");
  });

  test("keeps nothing of fields that it does not know", async () => {
    const server = await started();
    handle = async (name, { $unknown = [], category }) => {
      expect([...$unknown, ...(category?.$unknown ?? [])]).toEqual([]);
      return name;
    };
    const $unknown = [{ no: 9999, wireType: 2, data: new Uint8Array([1, 7]) }];
    const request = create(CreateCategoryRequestSchema, { category: { name: "dog" } });
    Object.assign(request, { $unknown });
    Object.assign(request.category as object, { $unknown });
    expect((await createClient(CategoryService, transport(server.url)).createCategory(request)).category?.name).toBe(
      "dog",
    );
  });

  test("refuses larger ones by their reason", async () => {
    const server = await started();
    for (const bytes of [MAX_MESSAGE_BYTES + 1, 5 * MAX_MESSAGE_BYTES]) {
      const error = await call(server, "x".repeat(bytes)).catch(ConnectError.from);
      expect(error).toMatchObject({ code: Code.ResourceExhausted });
      expect(reasonOf(error as ConnectError)?.reason).toBe("PAYLOAD_TOO_LARGE");
    }
    expect((await call(server, "still there")).category?.name).toBe("still ther");
  });

  test("closing ends a stream in good order, and is not held up by it", async () => {
    const server = await started();
    const watch = createClient(Health, transport(server.url)).watch({})[Symbol.asyncIterator]();
    expect((await watch.next()).value?.status).toBe(Status.SERVING);
    const closed = server.close();
    expect((await watch.next()).value?.status).toBe(Status.NOT_SERVING);
    await expect(watch.next()).rejects.toMatchObject({ code: Code.Unavailable, rawMessage: "the process stops" });
    await closed;
  });

  test("closing finishes what runs", async () => {
    const server = await started();
    const arrived = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<string>();
    handle = () => {
      arrived.resolve();
      return finish.promise;
    };
    const answer = call(server, "dog");
    await arrived.promise;
    const closed = server.close();
    expect(server.health.statuses.get("")).toBe(Status.NOT_SERVING);
    server.health.set(true);
    expect(server.health.statuses.get("")).toBe(Status.NOT_SERVING);
    finish.resolve("finished");
    expect((await answer).category?.name).toBe("finished");
    await closed;
    await expect(call(server, "late")).rejects.toThrow();
  });

  test("closing serves the connections that wait to be accepted", async () => {
    const server = await started();
    const sockets = Array.from({ length: 50 }, () => connect(server.port, "127.0.0.1"));
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    const closed = server.close();
    const answers = await Promise.all(sockets.map((socket) => text(socket.end("GET / HTTP/1.1\r\nhost: a\r\n\r\n"))));
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 404 /);
    await closed;
  });

  test("closing cuts off what takes too long", async () => {
    const server = await started();
    const arrived = Promise.withResolvers<void>();
    handle = () => {
      arrived.resolve();
      return new Promise(() => {});
    };
    const answer = call(server, "dog").catch(ConnectError.from);
    await arrived.promise;
    await server.close(50);
    expect(await answer).toBeInstanceOf(ConnectError);
  });
});

test("closing ends a stream of questions about the services", async () => {
  const server = await started();
  const silence = (async function* () {
    yield { messageRequest: { case: "listServices", value: "" } as const };
    await new Promise(() => {});
  })();
  const client = createClient(ServerReflection, createGrpcTransport({ baseUrl: server.url }));
  const answers = client.serverReflectionInfo(silence)[Symbol.asyncIterator]();
  await answers.next();
  const closed = server.close();
  await expect(answers.next()).rejects.toMatchObject({ code: Code.Unavailable, rawMessage: "the process stops" });
  await closed;
});

test("a message takes memory as it comes", async () => {
  const { port } = await started({ ...defaultLimits, requestBytes: 3 * REQUEST_BYTES + 40_000 });
  const hostile = rawHttp2(port);
  const path = "/petstore.category.v1.CategoryService/CreateCategory";
  const fields: readonly Field[] = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "a"],
    ["te", "trailers"],
    ["content-type", "application/grpc"],
  ];
  // The requests have room, but not what comes of them.
  const part = Buffer.concat([envelope(Buffer.alloc(MAX_MESSAGE_BYTES)).subarray(0, 5), Buffer.alloc(16_000)]);
  for (const stream of [1, 3, 5])
    hostile.send(headers(stream, fields, END_HEADERS), frame({ type: FrameType.DATA, stream, payload: part }));
  // Refused, though it has not arrived: the others may still.
  await hostile.received(({ type, stream }) => type === FrameType.HEADERS && stream === 5);
  expect(hostile.socket.destroyed).toBe(false);
});

test.each([
  ["announced by Content-Length", true],
  ["found out while it comes", false],
])("a message that is too large says so with its reason: %s", async (_, announced) => {
  const { port } = await started();
  const socket = connect(port, "127.0.0.1");
  const body = "x".repeat(MAX_MESSAGE_BYTES + 1);
  const size = announced ? `Content-Length: ${body.length}` : "Transfer-Encoding: chunked";
  const path = "/petstore.category.v1.CategoryService/CreateCategory";
  socket.end(
    `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${size}\r\n\r\n${
      announced ? body : `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    }`,
  );
  const answer = await text(socket);
  expect(answer).toMatch(/^HTTP\/1.1 429 /);
  expect(answer).toContain(`"message":"The message is larger than ${MAX_MESSAGE_BYTES} bytes."`);
  expect(answer).toContain('"reason":"PAYLOAD_TOO_LARGE"');
});

test.each([
  ["Connect", "application/json", (message: Buffer) => message],
  ["gRPC-Web", "application/grpc-web+json", envelope],
])("JSON that is not UTF-8 reaches no handler: %s", async (_, type, form) => {
  const { url } = await started();
  const names: string[] = [];
  handle = async (name) => {
    names.push(name);
    return name;
  };
  const ask = async (...name: number[]) => {
    const json = [Buffer.from('{"category":{"name":"'), Buffer.from(name), Buffer.from('"}}')];
    const body = new Uint8Array(form(Buffer.concat(json)));
    const path = `/${CategoryService.typeName}/CreateCategory`;
    return (await fetch(url + path, { method: "POST", headers: { "content-type": type }, body })).text();
  };
  // A byte that no character has, a character cut off, a surrogate, a longer form of "/".
  for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0xaf]])
    expect(await ask(0x61, ...bytes)).toMatch(/invalid_argument|grpc-status: 3/);
  await ask(0xc3, 0xa4);
  expect(names).toEqual(["ä"]);
});

describe("a message that can't be decoded is the caller's mistake", () => {
  const GARBAGE = Buffer.from([0x0a, 0xff]); // a field that is longer than what comes
  const path = `/${CategoryService.typeName}`;
  const wrong = { code: "invalid_argument", details: [{ debug: { reason: "VALIDATION_FAILED" } }] };

  test.each([
    ["no base64", "base64=1&encoding=proto&message=%25%25"],
    ["no message", "base64=1&encoding=proto&message=Cv8"],
    ["no UTF-8", "encoding=proto&message=%08%80%01"], // id 128, of which Connect would make 3104751
    ["no UTF-8 beside what is too long", `encoding=proto&m%65ssage=%08%80%01&x=${"x".repeat(200)}`],
    ["no JSON", "encoding=json&message=%7B"],
  ])("in the query of a Connect GET: %s", async (_, query) => {
    const answer = await fetch(`${(await started()).url}${path}/GetCategory?connect=v1&${query}`);
    expect([answer.status, await answer.json()]).toMatchObject([400, wrong]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  test.each([
    ["", {}],
    [" whose caller gave it no time", { "connect-timeout-ms": "0" }],
  ])("in the body of Connect%s", async (_, more) => {
    const init = { method: "POST", headers: { "content-type": "application/proto", ...more }, body: GARBAGE };
    const answer = await fetch(`${(await started()).url}${path}/CreateCategory`, init);
    expect([answer.status, await answer.json()]).toMatchObject([400, wrong]);
  });

  test("but an internal error in gRPC-Web, as in gRPC", async () => {
    const body = new Uint8Array(envelope(GARBAGE));
    const init = { method: "POST", headers: { "content-type": "application/grpc-web+proto" }, body };
    const answer = await fetch(`${(await started()).url}${path}/CreateCategory`, init);
    expect(answer.headers.get("grpc-status") ?? (await answer.text())).toMatch(/^13$|grpc-status: 13/);
  });
});

test("half of a surrogate pair that an error quotes does not keep gRPC-Web from its answer", async () => {
  const body = new Uint8Array(envelope(Buffer.from(String.raw`{"categoryId": "\ud83d"}`)));
  const init = { method: "POST", headers: { "content-type": "application/grpc-web+json" }, body };
  const answer = await fetch(`${(await started()).url}/${CategoryService.typeName}/GetCategory`, init);
  expect(answer.headers.get("grpc-message") ?? (await answer.text())).toContain("%EF%BF%BD");
});

test("a packed message is not unpacked beyond the limit", async () => {
  const transport = createGrpcTransport({ baseUrl: (await started()).url, sendCompression: compressionGzip });
  const name = "x".repeat(3 * MAX_MESSAGE_BYTES);
  const answer = createClient(CategoryService, transport).createCategory({ category: { name } });
  await expect(answer).rejects.toMatchObject({ code: Code.ResourceExhausted });
});
describe("listening", () => {
  const log = pino({ level: "silent" });
  const start = (host: string, port: number) =>
    startRpcServer({
      host,
      port,
      log,
      listenAdvice,
      dispatcher: createDispatcher([], { deps: { ...realTime, log }, secret: "", errors }),
      health: createHealth([]),
    });

  test("on a taken port says which, and what to do", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void taken.close());
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    await expect(start("127.0.0.1", port)).rejects.toThrow(
      `Can't listen on 127.0.0.1:${port}: port ${port} is taken, perhaps by another petstore: end it, or move this one with PORT_BASE=9080.`,
    );
  });

  test("on an address of another machine says what to do", async () => {
    await expect(start("192.0.2.1", 0)).rejects.toThrow(/HOST=192\.0\.2\.1 is no address of this machine/);
  });
});

test("whatever fails before there is an answer ends the request, and not the process", () => {
  const logged: object[] = [];
  let isDestroyed = false;
  const failure = new Error("nobody thought of it");
  const options = {
    dispatcher: { errors, asksCallers: false },
    log: { debug: (line: object) => logged.push(line) },
    links: {
      serve() {
        throw failure;
      },
    },
  };
  const response = { destroy: () => (isDestroyed = true) } as unknown as ServerResponse;
  const listener = createListener([], options as unknown as ListenerOptions);
  expect(listener({ url: "/a.B/C?message=private" } as IncomingMessage, response)).toBeUndefined();
  expect([isDestroyed, logged]).toEqual([true, [{ err: failure, path: "/a.B/C" }]]);
});
