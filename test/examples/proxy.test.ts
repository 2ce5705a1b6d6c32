/** The petstore through the proxy of examples/proxy: everything that it speaks, and what the proxy refuses itself. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { Agent, request as requestHttps } from "node:https";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { brief, watching } from "../../services/records/fixtures/watching.ts";
import { BEHIND_PROXY, nginxMissing, type OpenProxy, startProxy } from "../harness/nginx.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

const timeout = 120_000;
const MiB = 2 ** 20;

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}
interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

describe.skipIf(nginxMissing)("through the proxy", () => {
  let petstore: Petstore;
  let proxy: OpenProxy;
  let baseUrl: string;
  beforeAll(async () => {
    const env = { ...BEHIND_PROXY, MAX_BODY_BYTES: `${MiB}`, RATE_LIMIT: "200/h", MAX_STREAMS_PER_CALLER: "1000" };
    petstore = await startPetstore({ replicas: 1, env });
    proxy = await startProxy(petstore);
    baseUrl = `https://127.0.0.1:${proxy.port}`;
  }, timeout);
  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]();
    await petstore?.stop();
  });

  async function over1(path: string, { method, headers, body }: Asked = {}, more: object = {}): Promise<Answer> {
    const to = { host: "127.0.0.1", port: proxy.port, path, ca: proxy.ca };
    const asked = requestHttps({ ...to, method, headers, agent: false, ...more } as never).end(body);
    const [response] = await once(asked, "response");
    return { status: response.statusCode, headers: response.headers, text: await text(response) };
  }
  function openSession(createConnection?: () => TLSSocket) {
    const session = connectHttp2(baseUrl, createConnection ? { createConnection } : { ca: proxy.ca });
    onTestFinished(() => session.destroy());
    return session.on("error", () => {});
  }
  async function over2(path: string, asked: Asked = {}, session = openSession()): Promise<Answer> {
    const { method = "GET", headers, body } = asked;
    const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
    const stream = session.request({ ":path": path, ":method": method, ...length, ...headers });
    stream.end(body);
    const [{ ":status": status, ...answered }] = await once(stream, "response");
    return { status, headers: answered, text: await text(stream) };
  }

  describe.each([
    ["HTTP/1.1", over1],
    ["HTTP/2", over2],
  ] as const)("%s", (_, ask) => {
    const json = { "content-type": "application/json" };
    const post = (body: string | Buffer) => ask("/categories", { method: "POST", headers: json, body });

    test("records, and conditions on them", async () => {
      const made = await post('{"name":"dogs"}');
      expect([made.status, made.headers["api-version"]]).toEqual([201, "1.0.0"]);
      const [path, etag] = [`${made.headers.location}`, `${made.headers.etag}`];
      const unchanged = await ask(path, { headers: { "if-none-match": etag } });
      expect([unchanged.status, unchanged.headers.etag, unchanged.text]).toEqual([304, etag, ""]);
      const change = { method: "PATCH", body: '{"name":"cats"}' };
      const changed = await ask(path, { ...change, headers: { ...json, "if-match": etag } });
      expect([changed.status, JSON.parse(changed.text).name]).toEqual([200, "cats"]);
      const late = await ask(path, { ...change, headers: { ...json, "if-match": etag } });
      expect([late.status, JSON.parse(late.text).code]).toEqual([412, "ETAG_MISMATCH"]);
    });

    test("errors are the gateway's own", async () => {
      const { status, headers, text } = await ask("/pets/7", { headers: { accept: "application/problem+json" } });
      expect([status, headers["content-type"]]).toEqual([404, "application/problem+json; charset=utf-8"]);
      expect(JSON.parse(text)).toMatchObject({ code: "PET_NOT_FOUND", type: "about:blank", status: 404 });
      const long = await ask(`/pets?name=${"x".repeat(10_000)}`);
      expect([long.status, JSON.parse(long.text).code]).toEqual([414, "URI_TOO_LONG"]);
    });

    test("a body of 1 MiB, and one too large", async () => {
      const body = '{"name":"dogs"}';
      expect((await post(body + " ".repeat(MiB - body.length))).status).toBe(201);
      const { status, headers, text } = await post(Buffer.alloc(5 * MiB, " "));
      expect([status, JSON.parse(text)]).toEqual([413, expect.objectContaining({ code: "PAYLOAD_TOO_LARGE", status })]);
      expect([headers["content-type"], headers["x-request-id"]]).toEqual([
        "application/json; charset=utf-8",
        undefined,
      ]);
    });
  });

  const transports: [string, (options: { baseUrl: string; nodeOptions: { ca: string } }) => Transport][] = [
    ["gRPC", createGrpcTransport],
    ["gRPC-Web over HTTP/1.1", (options) => createGrpcWebTransport({ ...options, httpVersion: "1.1" })],
    ["gRPC-Web over HTTP/2", (options) => createGrpcWebTransport({ ...options, httpVersion: "2" })],
    ["Connect over HTTP/1.1", (options) => createConnectTransport({ ...options, httpVersion: "1.1" })],
    ["Connect over HTTP/2", (options) => createConnectTransport({ ...options, httpVersion: "2" })],
  ];
  const clientBy = (transportTo: (typeof transports)[number][1]) =>
    createClient(CategoryService, transportTo({ baseUrl, nodeOptions: { ca: proxy.ca } }));

  test.each(transports)("%s: calls, errors, and changes as they happen", { timeout }, async (_, transportTo) => {
    const categories = clientBy(transportTo);
    const gone = new AbortController();
    onTestFinished(() => gone.abort());
    const changes = watching(categories.watchCategories({}, { signal: gone.signal }));
    expect((await changes.take(1)).map(brief)).toEqual(["heartbeat"]);
    const { category } = await categories.createCategory({ category: { name: "birds" } });
    const [created] = await changes.events(1);
    expect(created?.category).toEqual(category);
    const missing = await categories.getCategory({ categoryId: 4711n }).catch((error) => error);
    expect(missing).toMatchObject({ code: Code.NotFound });
  });

  test.each([
    ["text/event-stream", /^event: petstore\.category\.created\.v1$/m],
    ["application/x-ndjson", /"event":"petstore\.category\.created\.v1"/],
  ])("GET /events as %s: changes as they happen", async (accept, created) => {
    const stream = openSession().request({ ":path": "/events?types=category", accept });
    await once(stream, "response");
    let told = "";
    stream.setEncoding("utf8").on("data", (more) => {
      told += more;
    });
    await expect.poll(() => told).toContain("id");
    await petstore.connect(CategoryService).createCategory({ category: { name: "fish" } });
    await expect.poll(() => told).toMatch(created);
  });

  test("gRPC reaches public services alone", async () => {
    const headers = { "content-type": "application/grpc", te: "trailers" };
    const path = "/petstore.internal.v1.CategoryInternalService/GetCategoryState";
    const answer = await over2(path, { method: "POST", headers, body: Buffer.alloc(5) });
    expect(answer.headers["grpc-status"]).toBe(`${Code.Unimplemented}`);
  });

  test("callers are told apart by their addresses, whatever they say of themselves", async () => {
    const remaining = async (localAddress: string, headers: Record<string, string> = {}) =>
      Number(/r=(\d+)/.exec(`${(await over1("/pets", { headers }, { localAddress })).headers.ratelimit}`)?.[1]);
    const full = await remaining("127.0.4.1");
    for (let i = 0; i < 10; i++) {
      await remaining("127.0.4.2", { "x-forwarded-for": `192.0.2.${i}` });
      await remaining("127.0.4.2", { forwarded: `for=192.0.2.${i}` });
    }
    expect(await remaining("127.0.4.2")).toBeLessThan(full - 15);
    expect(await remaining("127.0.4.3")).toBe(full);
  });

  // Without an id of its own a request is called as its trace.
  describe("a caller's trace ends at the proxy", () => {
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
    const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01`, tracestate: "foo=1" };
    test("on its way to the gateway", async () => {
      const answer = await over1("/pets", { headers });
      expect([answer.status, answer.headers["x-request-id"]]).toEqual([200, expect.not.stringMatching(traceId)]);
    });
    test("on its way to a service", async () => {
      const countServed = () => petstore.logs("category").split("CategoryService/ListCategories").length;
      const before = countServed();
      await clientBy(createGrpcTransport).listCategories({}, { headers });
      await expect.poll(countServed).toBeGreaterThan(before);
      expect(petstore.logs("category")).not.toContain(traceId);
    });
  });

  test.each<[string, string, Asked, number]>([
    ["no method", "/pets", { method: "TRACE" }, 405],
    ["a header field of 17 KiB", "/pets", { headers: { x: "y".repeat(17 * 1024) } }, 431],
    ["a target of 17 KiB", `/pets?${"y".repeat(17 * 1024)}`, {}, 414],
    ["a path that leads out", "/../pets", {}, 400],
    ["a transfer coding", "/pets", { method: "POST", headers: { "transfer-encoding": "gzip, chunked" } }, 501],
  ])("the proxy refuses in the petstore's words: %s", async (_, path, asked, expected) => {
    const { status, headers, text } = await over1(path, asked);
    expect([status, headers["content-type"]]).toEqual([expected, "application/json; charset=utf-8"]);
    expect(JSON.parse(text)).toEqual({ code: expect.any(String), message: expect.any(String), status });
  });

  test("an address has 100 connections", { timeout }, async () => {
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    const more = { agent, localAddress: "127.0.4.3" };
    const asked = await Promise.allSettled(Array.from({ length: 150 }, () => over1("/healthz", {}, more)));
    const statuses = asked.map((one) => (one.status === "fulfilled" ? one.value.status : "closed"));
    expect(Map.groupBy(statuses, (status) => status)).toSatisfy(
      (by: Map<unknown, unknown[]>) => by.get(200)?.length === 100 && by.get("closed")?.length === 50,
      JSON.stringify(statuses),
    );
    expect((await over1("/healthz", {}, { localAddress: "127.0.4.4" })).status).toBe(200);
  });

  /** An HTTP/2 session from any address, past the half of the proxy that counts connections. */
  async function sessionFrom(address: string) {
    const socket = connect(proxy.innerPort, "127.0.0.1");
    const family = address.includes(":") ? "TCP6" : "TCP4";
    socket.write(`PROXY ${family} ${address} ${address} 1 ${proxy.port}\r\n`);
    const secure = connectTls({ socket, host: "127.0.0.1", ca: proxy.ca, ALPNProtocols: ["h2"] });
    await once(secure, "secureConnect");
    return openSession(() => secure);
  }

  test("an address has 100 requests under way, of IPv6 a network of 64 bits", { timeout }, async () => {
    const sessions = await Promise.all(["2001:db8::1", "2001:db8::2"].map(sessionFrom));
    for (const session of sessions) {
      const streams = Array.from({ length: 50 }, () => session.request({ ":path": "/events?types=category" }));
      const answers = await Promise.all(streams.map((stream) => once(stream, "response")));
      expect(answers.map(([headers]) => headers[":status"])).toEqual(Array(50).fill(200));
    }
    const refused = await over2("/healthz", {}, sessions[1]);
    expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "1"]);
    expect(JSON.parse(refused.text)).toMatchObject({ code: "RATE_LIMITED", status: 429 });
    for (const other of ["2001:db8:0:1::1", "192.0.2.1"])
      expect((await over2("/healthz", {}, await sessionFrom(other))).status).toBe(200);
  });

  test("an address has 200 requests at once, and 50 a second", { timeout }, async () => {
    const session = await sessionFrom("192.0.2.2");
    const statuses: number[] = [];
    while (!statuses.includes(429)) {
      const asked = Array.from({ length: 90 }, () => over2("/healthz", {}, session));
      statuses.push(...(await Promise.all(asked)).map(({ status }) => status));
    }
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(200);
    expect((await over2("/healthz", {}, await sessionFrom("192.0.2.3"))).status).toBe(200);
  });

  test("a head and a body that don't come are cut off, without an answer", { timeout: 50_000 }, async () => {
    const head = "POST /categories HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    const heard = await Promise.all(
      [head, `${head}content-length: 9\r\n\r\n{`].map((bytes) => {
        const socket: Socket = connectTls({ port: proxy.port, host: "127.0.0.1", ca: proxy.ca });
        socket.on("error", () => {}).write(bytes);
        return text(socket).catch(() => "");
      }),
    );
    expect(heard).toEqual(["", ""]);
  });

  test("while the gateway or a service is away it is 503, for nobody knows what has happened", {
    timeout,
  }, async () => {
    await petstore.kill("gateway");
    const { status, headers, text } = await over2("/pets");
    expect([status, headers["retry-after"]]).toEqual([503, "1"]);
    expect(JSON.parse(text)).toMatchObject({ code: "UNAVAILABLE", status: 503 });
    await petstore.kill("category");
    for (const [, transportTo] of transports) {
      const call = clientBy(transportTo).getCategory({ categoryId: 1n });
      expect(ConnectError.from(await call.catch((error) => error)).code).toBe(Code.Unavailable);
    }
  });
});
