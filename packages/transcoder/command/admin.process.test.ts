/** The command's admin port, its metrics and its traces. */
import { createServer as createHttp1 } from "node:http";
import { createServer } from "node:http2";
import { BoundSocket } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { run, serveWith } from "./fixtures/command.ts";
import { descriptorSet, portOf, type Shop, shop, shopContract } from "./fixtures/shop.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";

let calls: Shop;
let target = "";
let args: string[] = [];
const closing: (() => void)[] = [];
beforeAll(async () => {
  const registry = shopContract();
  calls = shop(registry);
  const server = createServer(connectNodeAdapter({ routes: calls.routes }));
  target = await portOf(server);
  closing.push(() => server.close());
  args = ["--descriptor-set", descriptorSet(registry), "--target", target];
});
afterAll(() => closing.forEach((close) => void close()));

const traceparent = (flags: string) => ({ traceparent: `00-${TRACE}-${SPAN}-${flags}`, tracestate: "a=b" });

test("probes and metrics, and random paths and methods make no series", async () => {
  const { ask, admin } = await serveWith(args);
  expect((await ask("/items/a")).status).toBe(200);
  expect((await ask("/items/none")).status).toBe(404);
  for (const path of ["/x1", "/x2", "/items/a/b"]) expect((await ask(path)).status).toBe(404);
  await ask("/x3", { method: "PURGE" });
  for (const [path, status] of [
    ["/livez", 200],
    ["/startupz", 200],
    ["/readyz", 200],
    ["/nope", 404],
  ] as const)
    expect([path, (await ask(admin + path)).status]).toEqual([path, status]);
  expect((await ask(`${admin}/metrics`, { method: "POST" })).status).toBe(405);

  const plain = await ask(`${admin}/metrics`);
  expect(plain.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const counts = plain.text.split("\n").filter((line) => /^(http|rpc)_\w+_count/.test(line));
  expect(counts.toSorted()).toEqual(
    [
      'http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="404"} 3',
      'http_server_request_duration_seconds_count{http_request_method="GET",http_route="/items/{name}",http_response_status_code="200"} 1',
      'http_server_request_duration_seconds_count{http_request_method="GET",http_route="/items/{name}",http_response_status_code="404"} 1',
      'http_server_request_duration_seconds_count{http_request_method="_OTHER",http_response_status_code="404"} 1',
      'rpc_client_call_duration_seconds_count{rpc_system_name="connectrpc",rpc_method="shop.v1.Shop/GetItem",rpc_status_code="not_found"} 1',
      'rpc_client_call_duration_seconds_count{rpc_system_name="connectrpc",rpc_method="shop.v1.Shop/GetItem"} 1',
    ].toSorted(),
  );
  expect(plain.text).toMatch(/^connect_transcoder_build_info\{version="[\d.]+"\} 1$/m);
  expect(plain.text).toMatch(/^process_uptime_seconds /m);
  expect(plain.text).toMatch(/^nodejs_eventloop_time_seconds_total\{/m);
  expect(plain.text).not.toContain("petstore");

  const open = await ask(`${admin}/metrics`, { headers: { accept: "application/openmetrics-text; version=1.0.0" } });
  expect(open.headers.get("content-type")).toContain("application/openmetrics-text");
  expect(open.text).toMatch(/# EOF\n$/);
});

test("without a receiver a caller's trace goes on to the target as it came, and what is none does not", async () => {
  const { ask } = await serveWith([...args, "--admin-port", "off"]);
  for (const headers of [traceparent("01"), traceparent("00"), { traceparent: "nonsense", tracestate: "a=b" }])
    expect((await ask("/items/a", { headers })).status).toBe(200);
  const came = calls.headers.slice(-3).map((headers) => [headers.get("traceparent"), headers.get("tracestate")]);
  expect(came).toEqual([
    [`00-${TRACE}-${SPAN}-01`, "a=b"],
    [`00-${TRACE}-${SPAN}-00`, "a=b"],
    [null, null],
  ]);
});

test("with a receiver each request has a server span, and each call a client span below it", async () => {
  const sent: string[] = [];
  const receiver = createHttp1((request, response) => {
    const pieces: Buffer[] = [];
    request
      .on("data", (piece) => pieces.push(piece))
      .on("end", () => {
        sent.push(Buffer.concat(pieces).toString("latin1"));
        response.end();
      });
  });
  const endpoint = await portOf(receiver);
  closing.push(() => receiver.close());
  const { ask, stop } = await serveWith(args, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint });
  expect((await ask("/items/a?x=1", { headers: traceparent("00") })).status).toBe(400);
  expect((await ask("/items/a", { headers: traceparent("01") })).status).toBe(200);
  const [, trace, parent, flags] = calls.headers.at(-1)?.get("traceparent")?.split("-") ?? [];
  expect([trace, flags, calls.headers.at(-1)?.get("tracestate")]).toEqual([TRACE, "01", "a=b"]);
  expect(parent).not.toBe(SPAN);
  await ask("/items/a", { headers: traceparent("00") });
  expect(calls.headers.at(-1)?.get("traceparent")).toBe(`00-${TRACE}-${SPAN}-00`);
  await ask("/healthz");
  expect((await stop()).code).toBe(0); // what is left is sent before it ends
  const all = sent.join("");
  const count = (text: string) => all.split(text).length - 1;
  expect(all).toContain("connect-transcoder");
  expect([count("GET /items/{name}"), count("rpc.method"), count("server.port"), count("/healthz")]).toEqual([
    1, 1, 1, 0,
  ]);
  expect(all).toContain(Buffer.from(parent ?? "", "hex").toString("latin1"));
  expect(all).not.toContain("petstore");
});

test("while it drains it is not ready, and the admin port closes last", async () => {
  const { ask, admin, stop } = await serveWith(args);
  const late = ask("/items/held");
  await calls.asked;
  const ended = stop();
  await expect.poll(async () => (await ask(`${admin}/readyz`)).status).toBe(503);
  expect((await ask(`${admin}/livez`)).status).toBe(200);
  calls.held.resolve();
  expect((await late).status).toBe(200);
  expect((await ended).code).toBe(0);
});

test("it is ready as long as any target takes connections", async () => {
  const other = createHttp1();
  const url = await portOf(other);
  const [, set = ""] = args;
  const { ask, admin } = await serveWith(["--descriptor-set", set, "--target", url]);
  expect((await ask(`${admin}/readyz`)).status).toBe(200);
  await new Promise((resolve) => other.close(resolve));
  // Nobody takes connections there, for the port is taken, and by no other test's server.
  using _ = new BoundSocket({ host: "127.0.0.1", port: Number(new URL(url).port) });
  const away = await ask(`${admin}/readyz`);
  expect([away.status, JSON.parse(away.text)]).toEqual([503, { status: "not ready", failing: [new URL(url).host] }]);
});

test.each([
  ["no number", ["--admin-port", "x"], /--admin-port is a number from 0 to 65535, or off, and not "x"/],
  ["no room above the port", ["--port", "65500"], /--port 65500 leaves no room.*--admin-port/],
])("%s: it ends and says what to do", async (_, more, message) => {
  expect(await run(...args, ...more)).toEqual({ code: 2, text: expect.stringMatching(message) });
});

test("a variable of OpenTelemetry's that can't be used, and a port that is taken", async () => {
  await expect(serveWith(args, { OTEL_EXPORTER_OTLP_ENDPOINT: "nowhere" })).rejects.toThrow(
    /OTEL_EXPORTER_OTLP_ENDPOINT=nowhere is wrong/,
  );
  const taken = new URL(target).port;
  expect(await run(...args, "--port", "0", "--admin-port", taken)).toEqual({
    code: 1,
    text: expect.stringMatching(/Can't listen on 127.0.0.1:\d+: .*--admin-port/),
  });
});
