/** The gateway over TLS: HTTP/2 is answered as HTTP/1.1 is, to the last header. */
import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2, constants, type OutgoingHttpHeaders } from "node:http2";
import { request as overHttps, type RequestOptions } from "node:https";
import { text } from "node:stream/consumers";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { createHostCheck } from "@petstore/rpc/http/hosts";
import type { FastifyRequest } from "fastify";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { newAuthority, openFiles, pairOf } from "../packages/rpc/fixtures/tls.ts";
import type { Authority } from "../scripts/certificates.ts";
import { createClosing } from "./closing.ts";
import { cors } from "./cors.ts";
import { recordIn, sendRaw, servedInProcess, startGateway, testLimits } from "./fixtures/gateway.ts";
import { createRateLimits } from "./rates.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";

const gate = { wait: Promise.resolve(), entered: () => {} };
const service = {
  getPet: async () => {
    gate.entered();
    await gate.wait;
    return { pet: { id: 7n, name: "Rex", etag: '"1"' } };
  },
  deletePet: async () => {
    await gate.wait;
    return {};
  },
  listPets: () => ({ pets: [{ id: 7n, name: "Rex" }], nextPageToken: "t" }),
  createPet: () => ({ pet: { id: 8n, name: "Tom", etag: '"1"' } }),
};

let authority: Authority;
let gateway: Awaited<ReturnType<typeof start>>;
beforeAll(async () => {
  authority = await newAuthority();
});

async function start(options: Parameters<typeof startGateway>[2] = {}) {
  const { certificates } = await openFiles(await pairOf(authority));
  const services = [{ desc: PetService, transport: servedInProcess(PetService, service) }];
  const started = await startGateway(PetService, service, {
    cors: cors(["https://shop.example"]),
    plugins: [rpcEndpoint({ basePath: "", services, limits: { ...testLimits, rpcBytes: 2 ** 20 }, clock: Date.now })],
    ...options,
    tls: { certificates },
  });
  onTestFinished(() => started.app.close());
  return { ...started, url: `https://127.0.0.1:${started.port}` };
}

function http2({ url }: { readonly url: string }): ClientHttp2Session {
  const session = connectHttp2(url, { ca: authority.cert }).on("error", () => {});
  onTestFinished(() => session.destroy());
  return session;
}

interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

async function askHttp2(session: ClientHttp2Session, { method = "GET", path = "/pets", headers, body }: Asked) {
  const names: OutgoingHttpHeaders = { ":method": method, ...(method !== "CONNECT" && { ":path": path }), ...headers };
  const stream = session.request(names, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  const [{ ":status": status, ...answered }] = await once(stream, "response");
  return { status, headers: answered, text: await text(stream) };
}

async function askHttp1({ port }: { readonly port: number }, { method = "GET", path = "/pets", headers, body }: Asked) {
  const options: RequestOptions = { port, host: "127.0.0.1", ca: authority.cert, method, path, headers, agent: false };
  const request = overHttps(options).end(body);
  const [response] = await once(request, "response");
  return { status: response.statusCode, headers: response.headers, text: await text(response) };
}

/** What belongs to the version of HTTP, and what differs by itself. */
const NOT_COMPARED = ["connection", "keep-alive", "transfer-encoding", "date", "x-request-id"];
const comparable = ({ status, headers, text }: Awaited<ReturnType<typeof askHttp2>>) => ({
  status,
  headers: Object.fromEntries(
    Object.entries(headers).filter(
      ([name]) =>
        !NOT_COMPARED.includes(name) &&
        // Of what has no body by its status, or is trailers alone.
        !((status === 204 || "grpc-status" in headers) && name === "content-length"),
    ),
  ),
  text,
});

const json = { "content-type": "application/json" };
const pet = JSON.stringify({ name: "Tom", categoryId: 1 });
const connect = { ...json, "connect-protocol-version": "1" };
const preflight = { origin: "https://shop.example", "access-control-request-method": "PUT" };

/** What node tells of by itself, such as headers that HTTP/2 does not have. */
const warnings: string[] = [];
const note = ({ message }: Error) => void warnings.push(message);
beforeAll(() => void process.on("warning", note));
afterAll(() => {
  process.off("warning", note);
  expect(warnings).toEqual([]);
});

describe("HTTP/2 is answered as HTTP/1.1 is", () => {
  test.each<[string, Asked, number]>([
    ["a list", {}, 200],
    ["a record", { path: "/pets/7" }, 200],
    ["a record that is known", { path: "/pets/7", headers: { "if-none-match": '"1"' } }, 304],
    ["HEAD", { method: "HEAD", path: "/pets/7" }, 200],
    ["OPTIONS", { method: "OPTIONS" }, 204],
    ["a create", { method: "POST", headers: json, body: pet }, 201],
    ["a browser's preflight", { method: "OPTIONS", headers: preflight }, 204],
    ["a page of another origin", { headers: { origin: "https://shop.example" } }, 200],
    ["an unknown path", { path: "/nothing" }, 404],
    ["a path that can't be decoded", { path: "/pets/%zz" }, 400],
    ["another method", { method: "PUT", headers: json, body: "{}" }, 405],
    ["an unknown method of HTTP", { method: "PROPFIND" }, 405],
    ["a problem", { path: "/pets/x", headers: { accept: "application/problem+json" } }, 400],
    ["a type that there is not", { headers: { accept: "text/html" } }, 406],
    ["no body", { method: "POST", headers: json }, 400],
    ["a body without a type", { method: "POST", headers: { "content-length": `${pet.length}` }, body: pet }, 415],
    ["broken JSON", { method: "POST", headers: json, body: "{" }, 400],
    ["a body that is too large", { method: "POST", headers: json, body: Buffer.alloc(80_000, " ") }, 413],
    ["a target that is too long", { path: `/pets?${"x".repeat(9000)}` }, 414],
    [
      "a target and headers of the largest size",
      { path: `/${"x".repeat(8000)}`, headers: { x: "y".repeat(15_000) } },
      404,
    ],
    ["header fields that are too large", { headers: { x: "y".repeat(17_000) } }, 431],
    ["an odd Expect", { headers: { expect: "tea" } }, 200],
    [
      "an RPC of Connect",
      { method: "POST", path: "/petstore.pet.v1.PetService/GetPet", headers: connect, body: "{}" },
      200,
    ],
    ["an unknown RPC", { method: "POST", path: "/petstore.pet.v1.PetService/No", headers: connect, body: "{}" }, 404],
    [
      "gRPC",
      {
        method: "POST",
        path: "/petstore.pet.v1.PetService/GetPet",
        headers: { "content-type": "application/grpc" },
        body: "",
      },
      200,
    ],
  ])("%s", async (_, asked, status) => {
    gateway = await start();
    const answer = await askHttp2(http2(gateway), asked);
    expect(answer.status).toBe(status);
    expect(answer.headers["x-request-id"]).toMatch(/./);
    expect(comparable(answer)).toEqual(comparable(await askHttp1(gateway, asked)));
  });

  test("by gRPC-Web and Connect", async () => {
    const { url } = await start();
    const nodeOptions = { ca: authority.cert };
    const transports: Transport[] = (["1.1", "2"] as const).flatMap((httpVersion) => [
      createConnectTransport({ baseUrl: url, httpVersion, nodeOptions }),
      createGrpcWebTransport({ baseUrl: url, httpVersion, nodeOptions }),
    ]);
    for (const transport of transports)
      expect((await createClient(PetService, transport).getPet({ petId: 7n })).pet?.name).toBe("Rex");
    const grpc = createClient(PetService, createGrpcTransport({ baseUrl: url, nodeOptions }));
    const refused = ConnectError.from(await grpc.getPet({ petId: 7n }).catch((error) => error));
    expect([refused.code, refused.rawMessage]).toEqual([
      Code.Unimplemented,
      expect.stringContaining("call the service"),
    ]);
  });
});

test("a request that comes without a type and without a length is judged by what comes", async () => {
  const session = http2(await start());
  const answer = await askHttp2(session, { method: "POST", body: pet });
  expect([answer.status, JSON.parse(answer.text).code]).toEqual([415, "UNSUPPORTED_MEDIA_TYPE"]);
});

test("an IPv6 address may be named without brackets, as Node's client does", async () => {
  const session = http2(await start({ hosts: { check: createHostCheck([]) } }));
  const named = { ":authority": "::1:8443" };
  expect((await askHttp2(session, { headers: named })).status).toBe(200);
  const rpc = { method: "POST", path: "/petstore.pet.v1.PetService/GetPet", body: "{}" };
  expect((await askHttp2(session, { ...rpc, headers: { ...connect, ...named } })).status).toBe(200);
  expect((await askHttp2(session, { headers: { ":authority": "fd00::2:8443" } })).status).toBe(421);
});

test("CONNECT asks for a proxy, and this is none", async () => {
  const session = http2(await start());
  const answer = await askHttp2(session, { method: "CONNECT", headers: { ":authority": "other.example:443" } });
  expect([answer.status, JSON.parse(answer.text).code]).toEqual([404, "ROUTE_NOT_FOUND"]);
});

test.each(["LINK", "BREW", "get"])("%s is a method like any other that a path does not have", async (method) => {
  const rates = createRateLimits({ requests: 9, windowMs: 3_600_000, burst: 9 }, { clock: () => 0 });
  const started = await start({ rates });
  const session = http2(started);
  const wrong = await askHttp2(session, { method, headers: { "x-request-id": "mine" } });
  expect([wrong.status, JSON.parse(wrong.text).code]).toEqual([405, "METHOD_NOT_ALLOWED"]);
  expect(wrong.headers).toMatchObject({
    allow: "GET, HEAD, OPTIONS, POST",
    "x-request-id": "mine",
    ratelimit: expect.stringContaining("r=8;"),
  });
  const unknown = await askHttp2(session, { method, path: "/nowhere" });
  expect([unknown.status, JSON.parse(unknown.text).code]).toEqual([404, "ROUTE_NOT_FOUND"]);
  await expect.poll(() => started.log.join("")).toContain(`"method":"${method}","path":"/pets","status":405`);
  expect(started.log.join("")).not.toContain("bug");
});

test("a target counts for itself, and not among the header fields", async () => {
  const session = http2(await start());
  const request = { path: `/pets/1?x=${"y".repeat(7_000)}`, headers: { a: "z".repeat(12_000) } };
  expect((await askHttp2(session, request)).status).toBe(200);
});

test("header fields far beyond the limit are refused on their stream, and others are served", async () => {
  const session = http2(await start());
  const answer = await askHttp2(session, { headers: { a: "y".repeat(30_000), b: "y".repeat(30_000) } });
  expect([answer.status, JSON.parse(answer.text).code]).toEqual([431, "HEADERS_TOO_LARGE"]);
  expect((await askHttp2(session, {})).status).toBe(200);
});

test("a request keeps its id, and is logged as any other", async () => {
  const started = await start();
  const { headers } = await askHttp2(http2(started), { headers: { "x-request-id": "mine" } });
  expect(headers["x-request-id"]).toBe("mine");
  await expect.poll(() => started.log.join("")).toMatch(/"requestId":"mine".*"path":"\/pets","status":200/);
});

test("callers are counted by their address, whichever version they speak", async () => {
  const limits = createRateLimits({ requests: 3, windowMs: 3_600_000, burst: 3 }, { clock: () => 0 });
  const counted = await start({ rates: limits });
  const other = limits.count("address 192.0.2.1");
  expect(other?.remaining).toBe(2);
  const session = http2(counted);
  expect((await askHttp2(session, {})).headers.ratelimit).toMatch(/r=2;/);
  expect((await askHttp1(counted, {})).headers.ratelimit).toMatch(/r=1;/);
  expect((await askHttp2(session, {})).headers.ratelimit).toMatch(/r=0;/);
  expect((await askHttp2(session, {})).status).toBe(429);
  expect(limits.peek("address 127.0.0.1")?.remaining).toBe(0);
});

test("plain HTTP is answered with a record that says what to do", async () => {
  const { port } = await start();
  const answer = await sendRaw(port, "GET /pets HTTP/1.1\r\nHost: x\r\n\r\n");
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(recordIn(answer)).toMatchObject({ code: "INVALID_HEADER", message: expect.stringContaining("https://") });
});

test("a request that never ends is over in time", async () => {
  const session = http2(await start({ limits: { ...testLimits, requestMs: 300 } }));
  const stream = session.request({ ":method": "POST", ...json }).on("error", () => {});
  stream.write("{");
  await new Promise<void>((resolve) => stream.resume().once("close", () => resolve()));
  // What comes behind it has as little time, on whatever machine.
  await expect.poll(async () => (await askHttp2(session, {})).status, { timeout: 20_000 }).toBe(200);
});

test.each<[string, "GET" | "DELETE", 200 | 204]>([
  ["HTTP/2", "GET", 200],
  ["HTTP/2", "DELETE", 204],
  ["HTTP/1.1", "GET", 200],
  ["HTTP/1.1", "DELETE", 204],
])(
  "over %s a %s has arrived with its content, which means nothing, before it is answered",
  async (version, method, status) => {
    const answer = Promise.withResolvers<void>();
    gate.wait = answer.promise;
    onTestFinished(() => {
      gate.wait = Promise.resolve();
    });
    const arrived = Promise.withResolvers<void>();
    const started = await start({
      rates: createRateLimits({ requests: 100, windowMs: 1000, burst: 100 }, { clock: Date.now }),
      addressOf(request) {
        (request as FastifyRequest).raw?.once("end", arrived.resolve);
        return "somebody";
      },
    });
    const request = { method, path: "/pets/7", headers: { ...json, "content-length": "2" }, body: "{}" };
    const answered = version === "HTTP/2" ? askHttp2(http2(started), request) : askHttp1(started, request);
    await arrived.promise;
    answer.resolve();
    expect((await answered).status).toBe(status);
  },
);

describe("a stop", () => {
  afterAll(() => {
    gate.wait = Promise.resolve();
  });

  test("is told on HTTP/2 at once; what runs is answered, then the connection ends", async () => {
    const slow = Promise.withResolvers<void>();
    const lameDuck = Promise.withResolvers<void>();
    const { app, url } = await start();
    const closing = createClosing({ lameDuckMs: 1, sleep: () => lameDuck.promise });
    const session = http2({ url });
    expect((await askHttp2(session, { path: "/pets/7" })).status).toBe(200);
    gate.wait = slow.promise;
    const entered = new Promise<void>((resolve) => Object.assign(gate, { entered: resolve }));
    const running = askHttp2(session, { path: "/pets/7" });
    const goaway = once(session, "goaway");
    await entered;
    const closed = closing.close(app);
    expect((await goaway)[0]).toBe(constants.NGHTTP2_NO_ERROR);
    slow.resolve();
    expect((await running).status).toBe(200);
    // New connections are served all the while.
    expect((await askHttp2(http2({ url }), {})).status).toBe(200);
    lameDuck.resolve();
    await closed;
  });

  test("costs no request of HTTP/2 clients that ask without a pause, and again on a new connection where they are refused", async () => {
    const lameDuck = Promise.withResolvers<void>();
    const { app, url } = await start();
    const closing = createClosing({ lameDuckMs: 1, sleep: () => lameDuck.promise });
    const counts = { asked: 0, answered: 0, again: 0 };
    const sessions = Array.from({ length: 4 }, () => http2({ url }));
    const clients = sessions.flatMap((session) =>
      Array.from({ length: 5 }, async () => {
        while (!session.closed) {
          counts.asked++;
          const answer = await askHttp2(session, { path: "/pets/7" }).catch((error) => {
            // Nothing was done for it (RFC 9113, 8.7), or it was not sent.
            expect(`${error.message}`).toMatch(/NGHTTP2_REFUSED_STREAM|GOAWAY|closed|destroyed/i);
            counts.again++;
            return askHttp2(http2({ url }), { path: "/pets/7" });
          });
          if (answer.status === 200) counts.answered++;
        }
      }),
    );
    await expect.poll(() => counts.answered, { timeout: 30_000 }).toBeGreaterThan(200);
    const closed = closing.close(app);
    await Promise.all(clients);
    lameDuck.resolve();
    await closed;
    expect(counts.answered).toBe(counts.asked);
  });

  test("on HTTP/1.1 each connection ends with its next answer", async () => {
    const lameDuck = Promise.withResolvers<void>();
    const closing = createClosing({ lameDuckMs: 1, sleep: () => lameDuck.promise });
    const started = await start();
    const { app } = started;
    expect((await askHttp1(started, { headers: { connection: "keep-alive" } })).headers.connection).toBe("keep-alive");
    const closed = closing.close(app);
    const { headers } = await askHttp1(started, { headers: { connection: "keep-alive" } });
    expect(headers.connection).toBe("close");
    lameDuck.resolve();
    await closed;
  });
});
