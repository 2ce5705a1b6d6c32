/** The RPC server over real ports, with every protocol. */
import { once } from "node:events";
import { createServer } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { Code, ConnectError, type ConnectRouter, createClient, type Transport } from "@connectrpc/connect";
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { listenAdvice } from "../../../config.ts";
import { errors, reasonOf } from "../../../errors.ts";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { PetService } from "../../../proto/gen/petstore/pet/v1/pet_service_pb.ts";
import { END_HEADERS, END_STREAM, type Field, FrameType, frame, headers, rawHttp2 } from "../fixtures/frames.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/health/v1/health_pb.ts";
import { defaultLimits, type OnePortLimits } from "../http/one-port.ts";
import { REQUEST_BYTES, WORK_BYTES } from "../http/request-memory.ts";
import { createDispatcher, type Dispatcher } from "./dispatcher.ts";
import { createHealth, healthService } from "./health.ts";
import { MAX_MESSAGE_BYTES } from "./message-limit.ts";
import { maxRequestBytes } from "./request-limit.ts";
import { type RpcServer, startRpcServer } from "./server.ts";

/** `:status` as HPACK's static table has it (RFC 7541, appendix A). */
const [INDEXED_200, INDEXED_400] = [0x88, 0x8c];

const silent = pino({ level: "silent" });
const LIMIT = maxRequestBytes(CategoryService.method.createCategory);
let handle: (name: string) => Promise<string>;
beforeEach(() => {
  handle = async (name) => name.slice(0, 10);
});
const routes = (router: ConnectRouter) =>
  void router.service(CategoryService, {
    createCategory: async ({ category }) => ({ category: { id: 1n, name: await handle(category?.name ?? "") } }),
  });

function enveloped(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

async function started(limits?: OnePortLimits) {
  const health = createHealth([CategoryService.typeName]);
  const log = silent;
  const dispatcher = createDispatcher([healthService(health)], { deps: { ...realTime, log }, secret: "", errors });
  const routed: Dispatcher = {
    ...dispatcher,
    routes(router) {
      dispatcher.routes(router);
      routes(router);
    },
  };
  const server = await startRpcServer({ host: "127.0.0.1", port: 0, log, dispatcher: routed, health, limits });
  onTestFinished(() => server.close(0));
  return { ...server, health };
}

const transports: [string, (baseUrl: string) => Transport][] = [
  ["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
  ["gRPC-Web, HTTP/1.1", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
  ["gRPC-Web, HTTP/2", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" })],
  ["Connect, HTTP/1.1", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
  ["Connect, HTTP/2", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" })],
  ["Connect, JSON", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: false })],
];

describe.each(transports)("%s", (_, transport) => {
  const call = (server: RpcServer, name: string) =>
    createClient(CategoryService, transport(server.url)).createCategory({ category: { name } });

  test("is served", async () => {
    expect((await call(await started(), "dog")).category?.name).toBe("dog");
  });

  test("takes messages up to the limit", async () => {
    const almost = "x".repeat(LIMIT - 100);
    expect((await call(await started(), almost)).category?.name).toBe("xxxxxxxxxx");
  });

  test("refuses larger ones by their reason", async () => {
    const server = await started();
    for (const bytes of [LIMIT + 1, MAX_MESSAGE_BYTES + 1, 5 * MAX_MESSAGE_BYTES]) {
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
    expect(server.health.get("")).toBe(Status.NOT_SERVING);
    server.health.set(true);
    expect(server.health.get("")).toBe(Status.NOT_SERVING);
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

test("a message takes memory as soon as its length is announced", async () => {
  const { port } = await started({ ...defaultLimits, requestBytes: 7 * (REQUEST_BYTES + WORK_BYTES) });
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
  // The requests have room, but not what they will be.
  const payload = enveloped(Buffer.alloc(LIMIT)).subarray(0, 5);
  for (const stream of [1, 3, 5])
    hostile.send(headers(stream, fields, END_HEADERS), frame({ type: FrameType.DATA, stream, payload }));
  await hostile.closed;
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
  expect(answer).toContain(`"message":"The message is larger than ${LIMIT} bytes."`);
  expect(answer).toContain('"reason":"PAYLOAD_TOO_LARGE"');
});

test.each([
  ["Connect", "application/json", (message: Buffer) => message],
  ["gRPC-Web", "application/grpc-web+json", enveloped],
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
    const body = new Uint8Array(enveloped(GARBAGE));
    const init = { method: "POST", headers: { "content-type": "application/grpc-web+proto" }, body };
    const answer = await fetch(`${(await started()).url}${path}/CreateCategory`, init);
    expect(answer.headers.get("grpc-status") ?? (await answer.text())).toMatch(/^13$|grpc-status: 13/);
  });
});

test("half of a surrogate pair that an error quotes does not keep gRPC-Web from its answer", async () => {
  const body = new Uint8Array(enveloped(Buffer.from(String.raw`{"categoryId": "\ud83d"}`)));
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

describe("HTTP", () => {
  test("an unknown path is a short 404", async () => {
    const { url } = await started();
    const answer = await fetch(`${url}/petstore.category.v1.CategoryService/Nope`, { method: "POST", body: "{}" });
    expect([answer.status, await answer.text()]).toEqual([404, "There is no such RPC here.\n"]);
  });

  describe("to a client that asks for an unknown RPC", () => {
    const path = "/petstore.pet.v1.PetService/Nope";
    const ask = async (type: string) => {
      const { url } = await started();
      const answer = await fetch(url + path, { method: "POST", headers: { "content-type": type }, body: "\0\0\0\0\0" });
      return { answer, body: Buffer.from(await answer.arrayBuffer()) };
    };
    const error = {
      code: "unimplemented",
      message: "There is no such RPC here.",
      details: [expect.objectContaining({ debug: { reason: "ROUTE_NOT_FOUND", domain: "petstore" } })],
    };

    test.each([
      "application/grpc",
      "application/grpc+proto",
      "application/grpc-web+proto",
      "application/grpc-web-text",
    ])("%s gets a status of gRPC, and nothing else", async (type) => {
      const { answer, body } = await ask(type);
      expect(answer.status).toBe(200);
      expect(Object.fromEntries(answer.headers)).toMatchObject({ "content-type": type, "grpc-status": "12" });
      expect(body).toHaveLength(0);
    });

    test("gRPC gets it in one frame over HTTP/2, or clients such as grpc-go look for trailers in vain", async () => {
      const session = connectHttp2((await started()).url);
      onTestFinished(() => session.destroy());
      const request = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" });
      request.end("\0\0\0\0\0");
      const [headers, flags] = await once(request, "response");
      expect([headers["grpc-status"], flags & END_STREAM]).toEqual(["12", END_STREAM]);
    });

    test.each(["application/proto", "application/json", "Application/JSON; charset=utf-8"])(
      "%s gets an error of Connect",
      async (type) => {
        const { answer, body } = await ask(type);
        expect([answer.status, answer.headers.get("content-type")]).toEqual([404, "application/json"]);
        expect(JSON.parse(`${body}`)).toEqual(error);
      },
    );

    test("so does a GET of Connect", async () => {
      const { url } = await started();
      const answer = await fetch(`${url}${path}?connect=v1&encoding=json&message=%7B%7D`);
      expect([answer.status, await answer.json()]).toEqual([404, error]);
      expect(answer.headers.get("cache-control")).toBe("no-store");
    });

    test.each(["application/connect+json", "application/connect+proto"])(
      "%s gets the end of a stream",
      async (type) => {
        const { answer, body } = await ask(type);
        expect([answer.status, answer.headers.get("content-type")]).toEqual([200, type]);
        expect([body.readUInt8(0), body.readUInt32BE(1)]).toEqual([2, body.length - 5]);
        expect(JSON.parse(body.subarray(5).toString())).toMatchObject({ error });
      },
    );

    test.each(["text/plain", "application/grpcx", "application/grpc+a b"])("%s is no RPC", async (type) => {
      const { answer, body } = await ask(type);
      expect([answer.status, `${body}`]).toEqual([404, "There is no such RPC here.\n"]);
    });

    test.each(transports)("%s: its client says UNIMPLEMENTED", async (_, transport) => {
      const { url } = await started();
      await expect(createClient(PetService, transport(url)).getPet({})).rejects.toMatchObject({
        code: Code.Unimplemented,
      });
    });
  });

  test("a target may name scheme and host", async () => {
    const { url, port } = await started();
    const fields = `host: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close`;
    const socket = connect(port, "127.0.0.1");
    socket.end(`POST ${url}/grpc.health.v1.Health/Check HTTP/1.1\r\n${fields}\r\n\r\n{}`);
    expect(await text(socket)).toMatch(/^HTTP\/1.1 200 .*"SERVING/s);
  });

  test("a query after the path is not part of it", async () => {
    const { url } = await started();
    const answer = await fetch(`${url}/grpc.health.v1.Health/Check?x=1`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(await answer.json()).toEqual({ status: "SERVING" });
  });

  test.each([
    ["connect-timeout-ms", "9999999999", "application/json"],
    ["grpc-timeout", "99999999H", "application/grpc-web+json"],
  ])("a time in %s that no timer can run for is long, not over at once", async (name, value, type) => {
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    const { url } = await started();
    const json = Buffer.from("{}");
    const body = new Uint8Array(type === "application/json" ? json : enveloped(json));
    const path = `/${CategoryService.typeName}/CreateCategory`;
    const answer = await fetch(url + path, { method: "POST", headers: { "content-type": type, [name]: value }, body });
    expect([answer.status, await answer.text()]).toEqual([
      200,
      expect.not.stringMatching(/grpc-status: [^0]|deadline/),
    ]);
    expect(warnings).toEqual([]);
  });
  test("HTTP/1.0 may leave the host out", async () => {
    const { port } = await started();
    const socket = connect(port, "127.0.0.1");
    const json = "content-type: application/json\r\ncontent-length: 2\r\n";
    socket.end(`POST /grpc.health.v1.Health/Check HTTP/1.0\r\n${json}\r\n{}`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 [\s\S]*SERVING/);
  });

  describe("a request that is addressed to nobody", () => {
    const error = vi.spyOn(console, "error");
    afterEach(() => error.mockReset());
    const path = "/grpc.health.v1.Health/Check";
    const json = "content-type: application/json\r\ncontent-length: 2\r\n";

    test.each([
      ["no Host", ""],
      ["an empty Host", "Host:\r\n"],
      ["a Host with a space", "Host: a b\r\n"],
      ["a Host with a path", "Host: a/b\r\n"],
      ["two Hosts", "Host: a\r\nHost: a\r\n"],
    ])("HTTP/1.1, %s, is 400, and the next one is answered", async (_, host) => {
      const { port } = await started();
      const socket = connect(port, "127.0.0.1");
      const post = (given: string) => `POST ${path} HTTP/1.1\r\n${given}${json}\r\n{}`;
      socket.end(post(host) + post("Host: a\r\n"));
      expect((await text(socket)).match(/^HTTP.*/gm)).toEqual(["HTTP/1.1 400 Bad Request", "HTTP/1.1 200 OK"]);
    });

    test.each([
      [[":authority", "a b"]],
      [[":authority", "a/b"]],
      [[":authority", "a:b:c"]],
      [[":authority", ""]],
      [
        [":authority", "a"],
        ["host", "b"],
      ],
    ] as Field[][])("HTTP/2, %j, is 400, and nothing is printed", async (...host) => {
      const { port } = await started();
      const { send, received } = rawHttp2(port);
      const post = (stream: number, named: readonly Field[]) => [
        headers(
          stream,
          [[":method", "POST"], [":scheme", "http"], [":path", path], ...named, ["content-type", "application/json"]],
          END_HEADERS,
        ),
        frame({ type: FrameType.DATA, flags: END_STREAM, stream, payload: Buffer.from("{}") }),
      ];
      send(...post(1, host), ...post(3, [[":authority", "a"]]));
      const answers = [1, 3].map((of) =>
        received(
          ({ type, stream }) => stream === of && [FrameType.HEADERS, FrameType.RST_STREAM].includes(type as never),
        ),
      );
      const [bad, good] = await Promise.all(answers);
      // nghttp2 resets what it takes for malformed by itself.
      if (bad?.type === FrameType.HEADERS) expect(bad.payload[0]).toBe(INDEXED_400);
      expect(good).toMatchObject({ type: FrameType.HEADERS });
      expect(good?.payload[0]).toBe(INDEXED_200);
      expect(error).not.toHaveBeenCalled();
    });
  });
});

describe("listening", () => {
  const start = (host: string, port: number) =>
    startRpcServer({
      host,
      port,
      log: silent,
      listenAdvice,
      dispatcher: createDispatcher([], { deps: { ...realTime, log: silent }, secret: "", errors }),
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
