/** Calls from one service to another are one trace, in whatever way they come. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { errors } from "../../processes/errors.ts";
import { CategoryService } from "../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { recordedTracing } from "../trace/fixtures/recorded.ts";
import { callHeaders } from "./call.ts";
import { pipeline } from "./client/layers.ts";
import { createServiceTransport } from "./client/pipeline.ts";
import { DomainError } from "./domain-error.ts";
import { callerAddress } from "./http/hosts.ts";
import { inProcessTransport } from "./in-process/transport.ts";
import { createDispatcher } from "./server/dispatcher.ts";
import { type Handlers, implement } from "./server/handlers.ts";
import { createHealth, healthService } from "./server/health.ts";
import { startRpcServer } from "./server/server.ts";
import { traced, withSpans } from "./traced.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const secret = "the-secret-of-this-test-and-no-other";
const NAME = "petstore.category.v1.CategoryService/GetCategory";
const never = (): never => {
  throw new Error("not used");
};
const parent = { traceId: TRACE, spanId: SPAN, state: "foo=1" };
const headers = callHeaders({ id: "r", caller: "ann", trace: parent });

type Handler = Handlers<typeof CategoryService>["getCategory"];
const answers: Handler = () => ({ category: { id: 1n, name: "dogs" } });

function dispatcherOf(handler: Handler, { ratio = 1, isOn = true } = {}) {
  const recorded = recordedTracing({ ratio });
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const deps = { ...realTime, log, tracing: isOn ? recorded.tracing : undefined };
  const implementation = implement(CategoryService, { getCategory: handler } as Handlers<typeof CategoryService>);
  const only = {
    ...CategoryService,
    methods: [CategoryService.method.getCategory],
  } as unknown as typeof CategoryService;
  const health = createHealth([]);
  const services = [{ ...implementation, desc: only }, healthService(health)];
  const dispatcher = createDispatcher(services, { deps, errors, secret });
  return { ...recorded, lines, log, health, dispatcher };
}

async function listening(handler: Handler, options = {}) {
  const all = dispatcherOf(handler, options);
  const trusting = callerAddress([{ address: "127.0.0.1", bits: 32 }]);
  const isProxy = vi.fn(trusting.isProxy as NonNullable<typeof trusting.isProxy>);
  const addressOf = Object.assign((...args: Parameters<typeof trusting>) => trusting(...args), { isProxy });
  const server = await startRpcServer({ ...all, host: "127.0.0.1", port: 0, addressOf });
  onTestFinished(() => server.close(0));
  return { ...all, url: server.url, isProxy };
}

describe.each(["over a link", "by plain RPCs", "in memory"])("a call %s", (way) => {
  async function open(handler: Handler) {
    const all = way === "in memory" ? { ...dispatcherOf(handler), url: "" } : await listening(handler);
    const { dispatcher, tracing, url } = all;
    if (way === "in memory") {
      const transport = pipeline(
        withSpans(
          inProcessTransport(() => dispatcher),
          tracing,
        ),
        { errors, ...realTime },
      );
      return { ...all, client: createClient(CategoryService, transport) };
    }
    const link = way === "over a link";
    const transport = createServiceTransport({ urls: [url], secret, link, errors, tracing, ...realTime });
    onTestFinished(() => transport.close());
    return { ...all, client: createClient(CategoryService, transport) };
  }

  test("is a span of its caller with a span of the service below it, which the handler is told", async () => {
    let told: unknown;
    const { client, spans, lines, url } = await open((_request, { trace }) => {
      told = trace;
      return { category: { id: 1n, name: "dogs" } };
    });
    await client.getCategory({ categoryId: 1n }, { headers });
    const [server, caller] = spans();
    expect(caller).toMatchObject({ name: NAME, kind: "client", traceId: TRACE, parentId: SPAN });
    expect(server).toMatchObject({ name: NAME, kind: "server", traceId: TRACE, parentId: caller?.spanId });
    expect(told).toEqual({ traceId: TRACE, spanId: server?.spanId, state: "foo=1" });
    const rpc = { "rpc.system.name": "connectrpc", "rpc.method": NAME };
    expect(server?.attributes).toEqual(rpc);
    const { hostname, port } = url === "" ? {} : new URL(url);
    expect(caller?.attributes).toEqual({
      ...rpc,
      ...(url !== "" && { "server.address": hostname, "server.port": Number(port) }),
    });
    expect(lines.find(({ rpc }) => rpc === NAME)).toMatchObject({
      requestId: "r",
      trace_id: TRACE,
      span_id: server?.spanId,
    });
  });

  test("that is refused is a failure of its caller's span alone", async () => {
    const { client, spans } = await open(() => {
      throw new DomainError("CATEGORY_NOT_FOUND", "no 1");
    });
    await expect(client.getCategory({ categoryId: 1n }, { headers })).rejects.toThrow();
    const attributes = { "rpc.status_code": "not_found" };
    expect(spans()).toMatchObject([
      { kind: "server", hasFailed: false, attributes },
      { kind: "client", hasFailed: true, attributes: { ...attributes, "error.type": "not_found" } },
    ]);
  });

  test("that is no part of a recorded trace has no spans", async () => {
    const { client, spans } = await open(answers);
    await client.getCategory({ categoryId: 1n }, { headers: callHeaders({ id: "r", caller: "ann" }) });
    expect(spans()).toEqual([]);
  });
});

test("each attempt of a call is a span", async () => {
  const { tracing, spans } = recordedTracing();
  let attempts = 0;
  const flaky = withSpans(
    {
      unary: async () => {
        if (++attempts < 3) throw new ConnectError("socket hang up", Code.Aborted);
        return { header: new Headers(), trailer: new Headers(), message: {} } as never;
      },
      stream: () => Promise.reject(new Error("not used")),
    },
    tracing,
  );
  const client = createClient(CategoryService, pipeline(flaky, { errors, ...realTime, sleep: async () => {} }));
  await client.getCategory({ categoryId: 1n }, { headers });
  const of = { name: NAME, kind: "client", parentId: SPAN };
  expect(spans()).toMatchObject([
    { ...of, hasFailed: true, attributes: { "error.type": "aborted" } },
    { ...of, hasFailed: true },
    { ...of, hasFailed: false },
  ]);
});

test("at a service's own port a stranger's flag does not count, that of the petstore and of a trusted proxy does", async () => {
  const { dispatcher, spans } = dispatcherOf(answers, { ratio: 0 });
  const { getCategory } = CategoryService.method;
  const call = (more: object, given = new Headers(headers)) =>
    dispatcher.invoke(getCategory, { $typeName: "x", categoryId: 1n } as never, {
      headers: given,
      timeoutMs: undefined,
      ...more,
    });
  await call({});
  expect(spans()).toEqual([]);
  await call({ isProxy: true });
  await call({}, new Headers({ ...headers, "x-internal-secret": secret }));
  expect(spans()).toMatchObject([{ traceId: TRACE }, { traceId: TRACE }]);
});

test("a stream keeps nothing of its request, however long it lasts", async () => {
  const { tracing } = recordedTracing();
  async function* stream() {
    yield {};
    await new Promise(() => {});
  }
  const calls = traced(
    { invoke: never, stream } as never,
    tracing,
    () => true,
    () => false,
  );
  const begin = () => {
    const request = { $typeName: "request" };
    const incoming = { headers: new Headers(), timeoutMs: undefined, whenGone() {}, responseHeaders: new Headers() };
    const messages = calls.stream(CategoryService.method.watchCategories, request, incoming)[Symbol.asyncIterator]();
    return { messages, kept: [new WeakRef(request), new WeakRef(incoming)] };
  };
  const { messages, kept } = begin();
  expect(await messages.next()).toMatchObject({ done: false });
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  const left = () => {
    gc();
    return kept.filter((one) => one.deref()).length;
  };
  await expect.poll(left).toBe(0);
  expect(messages).toBeDefined(); // so that the stream itself lasts until here
});

test("without traces calls are as they were", () => {
  const [invoke, stream] = [async () => never(), never];
  const calls = traced({ invoke, stream }, undefined, never, never);
  expect(calls.invoke).toBe(invoke);
  expect(calls.stream).toBe(stream);
  const transport = { unary: never, stream: never };
  expect(withSpans(transport, undefined, "http://localhost")).toBe(transport);
});

test.each([
  ["known", true],
  ["not asked after without traces", false],
])("at the port a proxy is %s", async (_, isOn) => {
  const { url, spans, isProxy } = await listening(answers, { ratio: 0, isOn });
  const call = {
    method: "POST",
    body: '{"categoryId":"1"}',
    headers: { "content-type": "application/json", ...headers },
  };
  expect((await fetch(`${url}/${NAME}`, call)).status).toBe(200);
  expect(spans()).toMatchObject(isOn ? [{ traceId: TRACE, parentId: SPAN }] : []);
  expect(isProxy).toHaveBeenCalledTimes(isOn ? 1 : 0);
});

test("health checks have no spans", async () => {
  const { url, spans } = await listening(answers);
  const call = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
  expect((await fetch(`${url}/grpc.health.v1.Health/Check`, call)).status).toBe(200);
  expect(spans()).toEqual([]);
});
