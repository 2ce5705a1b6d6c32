import { request as requestOverHttp1 } from "node:http";
import { connect, constants } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { diag } from "@opentelemetry/api";
import { callerAddress } from "@petstore/rpc/http/hosts";
import { expect, onTestFinished, test, vi } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { recordedTracing } from "../packages/trace/fixtures/recorded.ts";
import type { GatewayOptions } from "./app.ts";
import { startGateway } from "./fixtures/gateway.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const sampled = { traceparent: `00-${TRACE}-${SPAN}-01` };

/** A gateway whose spans are kept, and the headers that its service was sent. */
async function start(options: Partial<GatewayOptions> = {}, ratio = 1) {
  const sent: Headers[] = [];
  const waiting = Promise.withResolvers<void>();
  const { tracing, spans } = recordedTracing({ ratio });
  const begin = vi.spyOn(tracing, "start");
  const pets = {
    async getPet({ petId }: { petId: bigint }, { requestHeader }: { requestHeader: Headers }) {
      sent.push(requestHeader);
      if (petId >= 1000n) await waiting.promise;
      if (petId === 500n) throw new ConnectError("no", Code.Internal);
      return { pet: { id: petId, name: "Rex", etag: '"1"' } };
    },
  };
  const gateway = await startGateway(PetService, pets, { tracing, ...options });
  const ended = (count: number) => expect.poll(spans).toHaveLength(count).then(spans);
  /** Lets those be answered that wait. */
  const answer = () => waiting.resolve();
  const close = async () => {
    answer();
    await gateway.app.close();
  };
  return { ...gateway, begin, sent, ended, answer, close, [Symbol.asyncDispose]: close };
}

test("a request is a span of its caller's trace, and the calls for it are below that", async () => {
  await using gateway = await start();
  const { headers } = await gateway.call("/pets/7?secret=1", { headers: { ...sampled, tracestate: "foo=1" } });
  const [span] = await gateway.ended(1);
  expect(span).toMatchObject({
    name: "GET /pets/{petId}",
    kind: "server",
    traceId: TRACE,
    parentId: SPAN,
    hasFailed: false,
  });
  expect(span?.attributes).toEqual({
    "http.request.method": "GET",
    "http.response.status_code": 200,
    "http.route": "/pets/{petId}",
    "url.path": "/pets/7",
    "url.scheme": "http",
  });
  expect(headers.get("x-request-id")).toBe(TRACE);
  expect(gateway.sent[0]?.get("traceparent")).toBe(`00-${TRACE}-${span?.spanId}-01`);
  expect(gateway.sent[0]?.get("tracestate")).toBe("foo=1");
  const line = gateway.log.map((one) => JSON.parse(one)).find(({ path }) => path === "/pets/7");
  expect(line).toMatchObject({ requestId: TRACE, trace_id: TRACE, span_id: span?.spanId });
});

test("a trace that begins here is called as its request, unless its caller has called that otherwise", async () => {
  await using gateway = await start();
  const named = await gateway.call("/pets/1", { headers: { "x-request-id": TRACE } });
  const other = await gateway.call("/pets/1");
  const [first, second] = await gateway.ended(2);
  expect(named.headers.get("x-request-id")).toBe(TRACE);
  expect(first).toMatchObject({ traceId: expect.not.stringMatching(TRACE), parentId: undefined });
  expect(second).toMatchObject({ traceId: other.headers.get("x-request-id"), parentId: undefined });
});

test("a failure of the petstore is one of the span, a refusal is not", async () => {
  await using gateway = await start();
  await gateway.call("/pets/500");
  await gateway.call("/nowhere", { method: "DELETE" });
  const [failed, refused] = await gateway.ended(2);
  expect(failed).toMatchObject({ hasFailed: true, attributes: { "error.type": "500" } });
  expect(refused).toMatchObject({ name: "DELETE", hasFailed: false, attributes: { "http.response.status_code": 404 } });
  expect(refused?.attributes).not.toHaveProperty("http.route");
});

test("methods that nobody knows share one name", async () => {
  await using gateway = await start();
  await gateway.app.inject({ method: "PROPFIND" as never, url: "/pets/1", headers: { host: "localhost" } });
  expect(await gateway.ended(1)).toMatchObject([{ attributes: { "http.request.method": "_OTHER" } }]);
});

test.each([
  ["a stranger's flag does not count", [], 0],
  ["that of a trusted proxy does", [{ address: "127.0.0.1", bits: 32 }], 1],
])("%s", async (_, proxies, count) => {
  await using gateway = await start({ addressOf: callerAddress(proxies) }, 0);
  await gateway.call("/pets/1", { headers: sampled });
  await gateway.ended(count);
  const sent = gateway.sent[0]?.get("traceparent");
  if (count === 0) expect(sent).toBeNull();
  else expect(sent).toMatch(new RegExp(`^00-${TRACE}-(?!${SPAN})\\w{16}-01$`));
});

test("requests that one call answers lead to the trace of the first", async () => {
  await using gateway = await start();
  const ask = () => gateway.app.inject({ url: "/pets/1", headers: { host: "localhost" } });
  await Promise.all([ask(), ask(), ask()]);
  expect(gateway.sent).toHaveLength(1);
  const spans = await gateway.ended(3);
  const [, first] = gateway.sent[0]?.get("traceparent")?.split("-") ?? [];
  expect(spans.filter(({ traceId }) => traceId === first)).toMatchObject([{ links: [] }]);
  expect(spans.filter(({ traceId }) => traceId !== first)).toMatchObject([{ links: [first] }, { links: [first] }]);
});

test("a caller who leaves has a span, by HTTP/1.1 and by HTTP/2", async () => {
  const gateway = await start();
  onTestFinished(gateway.close);
  const request = requestOverHttp1({ port: gateway.port, path: "/pets/1001" }).on("error", () => {});
  request.end();
  const session = connect(gateway.base);
  onTestFinished(() => session.destroy());
  const stream = session.request({ ":path": "/pets/1002" }).on("error", () => {});
  await expect.poll(() => gateway.sent).toHaveLength(2);
  request.destroy();
  stream.close(constants.NGHTTP2_CANCEL);
  const left = { hasFailed: false, attributes: { "http.response.status_code": 499 } };
  expect(await gateway.ended(2)).toMatchObject([left, left]);
});

test("nothing is added to the span of a caller who has left", async () => {
  const warn = vi.spyOn(diag, "warn");
  onTestFinished(() => warn.mockRestore());
  const gateway = await start();
  onTestFinished(gateway.close);
  const leaving = new AbortController();
  const ask = async (signal?: AbortSignal) =>
    gateway.app.inject({ url: "/pets/1001", headers: { host: "localhost" }, ...(signal && { signal }) });
  const [first, second] = [ask(), ask(leaving.signal).catch(() => {})];
  await expect.poll(() => gateway.sent).toHaveLength(1); // one call for both
  leaving.abort();
  await second;
  await gateway.ended(1);
  gateway.answer();
  expect((await first).statusCode).toBe(200);
  await gateway.ended(2);
  expect(warn).not.toHaveBeenCalled();
});

test("probes have no spans", async () => {
  const probe: NonNullable<GatewayOptions["plugins"]>[0] = async (app) => {
    app.get("/healthz", { config: { answersAnyHost: true } }, () => "ok");
  };
  await using gateway = await start({ plugins: [probe] });
  expect((await gateway.call("/healthz")).status).toBe(200);
  await gateway.call("/pets/1");
  expect(await gateway.ended(1)).toMatchObject([{ attributes: { "url.path": "/pets/1" } }]);
});

test("without traces nothing of them is in the log or sent on, but the request has the name of its trace", async () => {
  await using gateway = await start({ tracing: undefined });
  const { headers } = await gateway.call("/pets/1", { headers: sampled });
  expect(headers.get("x-request-id")).toBe(TRACE);
  expect(gateway.sent[0]?.get("traceparent")).toBeNull();
  expect(gateway.log.join("")).not.toContain("trace_id");
});
