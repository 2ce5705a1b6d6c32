/** Every request is counted once, under labels from a closed set. */
import { once } from "node:events";
import { request as requestOverHttp1 } from "node:http";
import { connect, constants } from "node:http2";
import { createAdmission } from "@petstore/rpc/admission/admission";
import { expect, onTestFinished, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { createMetrics } from "../processes/metrics.ts";
import type { GatewayOptions } from "./app.ts";
import { sendRaw, servedInProcess, startGateway, testLimits } from "./fixtures/gateway.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";

let waiting = 0;
const pets = servedInProcess(PetService, {
  getPet: () => ({ pet: { id: 1n, name: "Rex", etag: '"1"' } }),
  listPets: () => {
    waiting++;
    return new Promise(() => {}); // never answers
  },
});

async function start(options: Partial<GatewayOptions> = {}) {
  const metrics = createMetrics();
  const services = [{ desc: PetService, transport: pets }];
  const limits = { rpcBytes: 64 * 1024, requestMs: testLimits.requestMs };
  const plugins = [rpcEndpoint({ basePath: "/api", services, limits, clock: Date.now })];
  const gateway = await startGateway(PetService, {}, { services, plugins, metrics, basePath: "/api", ...options });
  onTestFinished(() => gateway.app.close());
  const lines = (name: string) =>
    metrics
      .text("plain")
      .split("\n")
      .filter((line) => line.startsWith(name));
  const counts = () =>
    Object.fromEntries(
      lines("http_server_request_duration_seconds_count").map((line) => {
        const label = (name: string) => new RegExp(`${name}="([^"]*)"`).exec(line)?.[1] ?? "-";
        const key = [label("http_request_method"), label("http_route"), label("http_response_status_code")].join(" ");
        return [key, Number(line.split(" ").at(-1))];
      }),
    );
  return { ...gateway, metrics, counts, lines };
}

test("operations, RPCs, what there is not, what is refused and what is malformed", async () => {
  const { call, counts, port } = await start({
    hosts: { check: ({ headers }) => (headers.host === "evil" ? "no" : undefined) },
  });
  await call("/api/pets/1");
  await call("/api/pets/2");
  await call("/api/pets/1", { method: "HEAD" });
  await call("/api/pets/1", { method: "TRUNCATE" }).catch(() => {}); // fetch knows it, Node's parser does not
  await call("/api/nowhere");
  await call("/api/pets/%zz");
  await call("/api/pets", { method: "PUT" });
  const headers = { "content-type": "application/json" };
  await call("/api/petstore.pet.v1.PetService/GetPet", { method: "POST", headers, body: "{}" });
  await call("/api/petstore.pet.v1.PetService/Nope", { method: "POST", headers, body: "{}" });
  await sendRaw(port, "GET /api/pets/1 HTTP/1.1\r\nhost: evil\r\nconnection: close\r\n\r\n");
  await expect.poll(counts).toEqual({
    "GET /api/pets/{petId} 200": 2,
    "HEAD /api/pets/{petId} 200": 1,
    "GET - 404": 1,
    "GET /api/pets/{petId} 400": 1,
    "PUT - 405": 1,
    "POST /api/petstore.pet.v1.PetService/GetPet 200": 1,
    "POST - 404": 1,
    "GET /api/pets/{petId} 421": 1,
  });
});

test("what is refused before Fastify sees it, with the reason", async () => {
  const admission = createAdmission({ clock: () => 0 });
  const { method } = PetService;
  while (!admission.isFull(method.updatePet)) admission.begin(method.updatePet);
  const { call, counts, lines } = await start({ services: [{ desc: PetService, transport: pets, admission }] });
  expect((await call("/api/pets/1")).status).toBe(503);
  await expect.poll(counts).toEqual({ "GET /api/pets/{petId} 503": 1 });
  expect(lines("petstore_refused_total")).toEqual(['petstore_refused_total{reason="OVERLOADED"} 1']);
});

test("what the layers refuse, at both endpoints", async () => {
  const rate = { requests: 1, windowMs: 1000, burst: 1 };
  const used = () => ({ allowed: false, rate, remaining: 0, resetMs: 1, retryMs: 1, used: { at: 0, count: 1 } });
  const { call, counts, lines } = await start({ rates: { count: used, peek: used } as never });
  await call("/api/pets/1");
  await call("/api/nowhere");
  const headers = { "content-type": "application/json" };
  await call("/api/petstore.pet.v1.PetService/GetPet", { method: "POST", headers, body: "{}" });
  await expect.poll(counts).toEqual({
    "GET /api/pets/{petId} 429": 1,
    "GET - 429": 1,
    "POST /api/petstore.pet.v1.PetService/GetPet 429": 1,
  });
  expect(lines("petstore_refused_total")).toEqual(['petstore_refused_total{reason="RATE_LIMITED"} 3']);
});

test("the trace of a request, if it has one, is an exemplar", async () => {
  const trace = { traceId: "a".repeat(32), spanId: "b".repeat(16), sampled: true };
  const { call, metrics } = await start({
    plugins: [
      async (app) => {
        app.get("/traced", async (request) => {
          Object.assign(request, { trace });
          return {};
        });
      },
    ],
  });
  await call("/traced");
  const exemplar = `# {trace_id="${trace.traceId}",span_id="${trace.spanId}"}`;
  await expect.poll(() => metrics.text("openmetrics")).toContain(exemplar);
});

test("a caller who leaves, by HTTP/1.1 and by HTTP/2", async () => {
  const { port, base, counts } = await start();
  const request = requestOverHttp1({ port, path: "/api/pets" }).on("error", () => {});
  request.end();
  const session = connect(base);
  onTestFinished(() => session.destroy());
  const stream = session.request({ ":path": "/api/pets?limit=7" }).on("error", () => {});
  await expect.poll(() => waiting).toBe(2);
  request.destroy();
  stream.close(constants.NGHTTP2_CANCEL);
  await expect.poll(counts).toEqual({ "GET /api/pets 499": 2 });
});

test("calls of a deprecated operation are counted from 0 on, so that the first is an increase", async () => {
  const { call, lines } = await start();
  const line = 'petstore_deprecated_requests_total{http_route="/api/pets/{petId}"}';
  expect(lines("petstore_deprecated_requests_total")).toEqual([`${line} 0`]);
  await call("/api/pets/1");
  expect(lines("petstore_deprecated_requests_total")).toEqual([`${line} 1`]);
});

test("any paths, hosts and methods add no series", async () => {
  const { base, counts, lines } = await start();
  const session = connect(base);
  onTestFinished(() => session.destroy());
  const text = () => Math.random().toString(36).slice(2);
  for (let round = 0; round < 100; round++)
    await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        const method = i % 2 ? "GET" : text().toUpperCase();
        const path = i % 3 ? `/${text()}/${text()}?${text()}` : `/api/pets/${text()}`;
        const stream = session.request({ ":method": method, ":path": path, ":authority": `${text()}.example` });
        await once(stream.end().resume(), "close");
      }),
    );
  const sum = () => Object.values(counts()).reduce((total, count) => total + count, 0);
  await expect.poll(sum).toBe(2_000);
  expect(Object.keys(counts()).toSorted()).toEqual([
    "GET - 404",
    "GET /api/pets/{petId} 400",
    "_OTHER - 404",
    "_OTHER - 405",
  ]);
  // The contract deprecates this operation.
  expect(lines("petstore_deprecated_requests_total")).toEqual([
    `petstore_deprecated_requests_total{http_route="/api/pets/{petId}"} ${counts()["GET /api/pets/{petId} 400"]}`,
  ]);
});
