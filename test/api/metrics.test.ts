/** What the admin ports tell Prometheus, of all processes that `npm start` runs: in five processes and in one. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { CONTENT_TYPE, formFor } from "@petstore/metrics/exposition";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { run } from "../../packages/runtime/fixtures/run.ts";
import { createMetrics, METRICS } from "../../processes/metrics.ts";
import { eventually } from "../harness/eventually.ts";
import { freePorts } from "../harness/instances.ts";
import { prometheusMissing, promtool, startPrometheus } from "../harness/prometheus.ts";
import { sumOf } from "../harness/samples.ts";

const timeout = 240_000;

test.skipIf(prometheusMissing)("a Prometheus keeps the exemplars", { timeout }, async () => {
  const metrics = createMetrics();
  const trace = { traceId: "a".repeat(32), spanId: "b".repeat(16), sampled: true };
  metrics.served(PetService.method.getPet, 6, undefined, { trace } as never);
  const server = createServer(({ headers }, response) => {
    const form = formFor(headers.accept);
    response.setHeader("content-type", CONTENT_TYPE[form]);
    response.end(metrics.text(form));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  await using prometheus = await startPrometheus([`127.0.0.1:${port}`]);
  const range = `start=${Date.now() / 1000 - 60}&end=${Date.now() / 1000 + 600}`;
  const kept = async () => {
    const asked = `query_exemplars?query=${METRICS.served.name}_bucket&${range}`;
    const [series] = (await prometheus.ask(asked)) as {
      exemplars: { labels: Record<string, string>; value: string }[];
    }[];
    return series?.exemplars.map(({ labels, value }) => [labels.trace_id, labels.span_id, value]);
  };
  await eventually(kept, [[trace.traceId, trace.spanId, "0.006"]]);
});

describe.each([
  ["five processes", [], 5],
  ["one process", ["--single-process"], 1],
] as const)("%s", (_, args, processes) => {
  const stack = new AsyncDisposableStack();
  let base: number;
  const admins = () => Array.from({ length: processes }, (_, i) => `127.0.0.1:${base + 100 + i}`);
  beforeAll(async () => {
    const dir = await mkdtemp(join(tmpdir(), "metrics-"));
    stack.defer(() => rm(dir, { recursive: true, force: true }));
    base = await freePorts();
    const env = { PORT_BASE: `${base}`, DATA_DIR: dir, LAME_DUCK: "0s", PATH: process.env.PATH ?? "" };
    const it = stack.use(run(["launcher/main.ts", ...args], env));
    await it.printed(/is ready/);
  }, timeout);
  afterAll(() => stack.disposeAsync(), timeout);

  const read = async (path: string, accept = "text/plain") =>
    Promise.all(
      admins().map(async (at) => {
        const answer = await fetch(`http://${at}${path}`, { headers: { accept } });
        return { status: answer.status, type: answer.headers.get("content-type"), text: await answer.text() };
      }),
    );
  const texts = async () => (await read("/metrics")).map(({ text }) => text);
  const sum = async (name: string, labels: Readonly<Record<string, string>> = {}) =>
    sumOf(await texts(), `${METRICS[name as keyof typeof METRICS].name}_count`, labels);

  const ask = (path: string, body?: object) =>
    fetch(`http://127.0.0.1:${base}${path}`, {
      method: body ? "POST" : "GET",
      headers: { "content-type": "application/json" },
      body: body && JSON.stringify(body),
    }).then((answer) => answer.arrayBuffer());

  test("all have started, and live", async () => {
    for (const probe of ["/startupz", "/livez", "/readyz"])
      expect((await read(probe)).map(({ status }) => status)).toEqual(Array(processes).fill(200));
  });

  test("after so many requests, calls and operations the sums are just that", { timeout }, async () => {
    const before = (await sum("requests")) ?? 0;
    await ask("/categories", { name: "Dogs" });
    await ask("/pets", { name: "Rex", categoryId: 1 });
    const transport = createConnectTransport({ baseUrl: `http://127.0.0.1:${base}`, httpVersion: "2" });
    const pets = createClient(PetService, transport);
    for (let i = 0; i < 40; i++)
      await Promise.all([ask("/pets/1"), ask("/pets/2"), ask(`/nowhere/${i}`), pets.getPet({ petId: 1n })]);
    await eventually(() => sum("requests"), before + 2 + 4 * 40);
    const route = { http_route: "/pets/{petId}", http_request_method: "GET" };
    expect(await sum("requests", { ...route, http_response_status_code: "404" })).toBe(40);
    // Equal reads at the same time share a call: those by REST of pet 1 and those by RPC don't meet.
    const method = { rpc_method: `${PetService.typeName}/GetPet` };
    const calls = await sum("called", method);
    expect(calls).toBe(120);
    await eventually(() => sum("served", method), calls);
    await eventually(
      () => sum("operations", { db_namespace: "pet", db_collection_name: "pets", db_operation_name: "get" }),
      calls,
    );
    expect(await sum("operations", { db_namespace: "category", db_operation_name: "nextId" })).toBe(1);
  });

  test("every metric is there, in both forms", { timeout }, async () => {
    const all = (await texts()).join("");
    const declared = Object.values(METRICS).map(({ name, kind }) => `# TYPE ${name} ${kind}`);
    expect(declared.filter((line) => !all.includes(`${line}\n`))).toEqual([]);
    // What is stored is counted once all of it was read.
    const stored = () => texts().then((found) => sumOf(found, "petstore_idempotency_keys", { kind: "order" }));
    await eventually(stored, 0);
    for (const { type, text } of await read("/metrics", "application/openmetrics-text; version=1.0.0")) {
      expect(type).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
      expect(text.endsWith("\n# EOF\n")).toBe(true);
    }
    for (const { type } of await read("/metrics")) expect(type).toBe("text/plain; version=0.0.4; charset=utf-8");
  });

  test.skipIf(prometheusMissing)("promtool finds nothing wrong", { timeout }, async () => {
    for (const text of await texts())
      expect(await promtool(["check", "metrics"], text)).toEqual({ isGood: true, output: "" });
  });

  test.skipIf(prometheusMissing)("a Prometheus reads all of it as OpenMetrics", { timeout }, async () => {
    await using prometheus = await startPrometheus(admins());
    const value = async (query: string) => {
      const { result } = (await prometheus.ask(`query?query=${encodeURIComponent(query)}`)) as {
        result: { value: [number, string] }[];
      };
      return result.map((one) => one.value[1]);
    };
    await eventually(() => value("sum(up)"), [`${processes}`]);
    const count = 'sum(http_server_request_duration_seconds_count{http_response_status_code="404"})';
    await eventually(() => value(count), [`${await sum("requests", { http_response_status_code: "404" })}`]);
    await eventually(() => value("sum(petstore_build_info)"), [`${processes}`]);
  });
});
