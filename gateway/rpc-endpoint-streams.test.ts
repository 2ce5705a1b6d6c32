/** Streams through the gateway, of a contract of which it knows nothing but the descriptors. */
import { getEventListeners } from "node:events";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { createAdmission } from "@petstore/rpc/admission/admission";
import { createAuthentication } from "@petstore/rpc/auth/authentication";
import { realTime } from "@petstore/runtime/clock";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { errors, reasonOf, rpcError } from "#errors";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { START_LIMIT } from "../packages/rpc/admission/limit.ts";
import { startTicker, TickerService } from "../packages/rpc/fixtures/ticker.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../packages/rpc/gen/health/v1/health_pb.ts";
import type { GatewayOptions } from "./app.ts";
import { authOf } from "./auth.ts";
import { createClosing } from "./closing.ts";
import { cors } from "./cors.ts";
import { servedAt, servedInProcess, startGateway } from "./fixtures/gateway.ts";
import { createRateLimits } from "./rates.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";

let gateway: Awaited<ReturnType<typeof startGateway>>;
let seen: Headers;
/** Lets the service send its second message. */
let goOn = () => {};
let left = Promise.withResolvers<void>();

beforeAll(async () => {
  const transport = createRouterTransport(({ service }) =>
    service(Health, {
      async *watch(request, { requestHeader, responseHeader, responseTrailer, signal }) {
        seen = requestHeader;
        signal.addEventListener("abort", () => left.resolve());
        responseHeader.set("x-before", "the first");
        yield { status: Status.SERVING };
        if (request.service === "fails") throw rpcError("OVERLOADED", "Too much.");
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
        responseTrailer.set("x-after", "the last");
        yield { status: Status.NOT_SERVING };
      },
    }),
  );
  const limits = { rpcBytes: 1024, requestMs: 1 };
  const endpoint = rpcEndpoint({ basePath: "", services: [{ desc: Health, transport }], limits, clock: Date.now });
  gateway = await startGateway(PetService, {}, { plugins: [endpoint] });
});
afterAll(() => gateway.app.close());

describe.each([
  ["Connect", createConnectTransport],
  ["gRPC-Web", createGrpcWebTransport],
] as const)("%s", (_, open) => {
  const client = () => createClient(Health, open({ baseUrl: gateway.base, httpVersion: "1.1" }));

  test("messages pass as they come, with headers and trailers, without a limit of time", async () => {
    const metadata: Record<string, string | null> = {};
    const answers = client()
      .watch(
        {},
        {
          headers: { "x-internal-caller": "root" },
          onHeader: (headers) => Object.assign(metadata, { before: headers.get("x-before") }),
          onTrailer: (trailers) => Object.assign(metadata, { after: trailers.get("x-after") }),
        },
      )
      [Symbol.asyncIterator]();
    expect((await answers.next()).value?.status).toBe(Status.SERVING);
    expect([seen.get("x-internal-caller"), metadata]).toEqual(["anonymous", { before: "the first" }]);
    goOn();
    expect((await answers.next()).value?.status).toBe(Status.NOT_SERVING);
    expect((await answers.next()).done).toBe(true);
    expect(metadata.after).toBe("the last");
  });

  test("an error in the middle of a stream comes with its reason", async () => {
    const answers = client().watch({ service: "fails" })[Symbol.asyncIterator]();
    await answers.next();
    const error = await answers.next().catch((thrown) => ConnectError.from(thrown));
    if (!(error instanceof ConnectError)) return expect.fail("no error");
    expect([error.code, reasonOf(error)?.reason]).toEqual([Code.Unavailable, "OVERLOADED"]);
  });

  test("a caller that leaves ends the stream at the service", async () => {
    left = Promise.withResolvers();
    const gone = new AbortController();
    const answers = client().watch({}, { signal: gone.signal })[Symbol.asyncIterator]();
    await answers.next();
    gone.abort();
    await expect(answers.next()).rejects.toThrow();
    await left.promise;
    goOn();
  });
});

const reasonIn = (thrown: unknown) => {
  const error = ConnectError.from(thrown);
  return [Code[error.code], reasonOf(error)?.reason];
};
const forever = () => new Promise<never>(() => {});
/** A service whose stream says one thing and goes on. */
const ticking = servedInProcess(TickerService, {
  async *watch() {
    yield { text: "first" };
    await forever();
  },
});

interface Options extends Partial<GatewayOptions> {
  readonly transport?: typeof ticking;
}

/** A gateway in front of it, and a client of that. */
async function start({ transport = ticking, ...options }: Options = {}) {
  const draining = new AbortController();
  const services = [{ desc: TickerService, transport }];
  const limits = { rpcBytes: 1024, requestMs: 10_000 };
  const endpoint = rpcEndpoint({ basePath: "", services, limits, clock: Date.now, draining: draining.signal });
  const all = { services: [], plugins: [endpoint], draining: draining.signal, ...options };
  const started = await startGateway(PetService, {}, all);
  onTestFinished(async () => {
    draining.abort();
    await started.app.close();
  });
  const client = createClient(TickerService, createConnectTransport({ baseUrl: started.base, httpVersion: "1.1" }));
  const begin = async (headers: Record<string, string> = {}) => {
    const gone = new AbortController();
    const stream = client.watch({}, { headers, signal: gone.signal })[Symbol.asyncIterator]();
    await stream.next();
    return { stream, leave: () => gone.abort() };
  };
  return { ...started, draining, begin };
}

test("a caller has no more streams than it may, until one has ended, and others have theirs", async () => {
  const apiKeys = (text: string) => ({ id: text, scopes: new Set(["*"]) });
  const authentication = createAuthentication({ errors, realm: "petstore", apiKeys, tokens: apiKeys });
  const known: GatewayOptions["auth"] = {
    async admit(request, method, tell) {
      const { id } = await authentication.admit(
        { authorization: request.headers.authorization, apiKey: undefined },
        PetService.method.getPet,
        tell,
      );
      return { id, method } as never;
    },
  };
  const { begin } = await start({ auth: known, streams: { streams: 4, streamsPerCaller: 2 } });
  const as = (name: string) => begin({ authorization: `Bearer ${name}` });
  const { leave } = await as("ann");
  await as("ann");
  await expect(as("ann").catch(reasonIn)).resolves.toEqual(["ResourceExhausted", "TOO_MANY_STREAMS"]);
  await as("bob");
  await as("cid");
  await expect(as("dan").catch(reasonIn)).resolves.toEqual(["ResourceExhausted", "TOO_MANY_STREAMS"]);
  leave();
  await vi.waitUntil(() => as("ann").then(Boolean, () => false), { timeout: 30_000 });
});

test("a caller who may not call it opens no stream, for its method declares no scope", async () => {
  const apiKeys = () => ({ id: "key:ann", scopes: new Set(["*"]) });
  const { begin } = await start({ auth: authOf(createAuthentication({ errors, realm: "petstore", apiKeys })) });
  await expect(begin().catch(reasonIn)).resolves.toEqual(["Unauthenticated", "UNAUTHENTICATED"]);
  const refused = begin({ "x-api-key": "any" }).catch(reasonIn);
  await expect(refused).resolves.toEqual(["PermissionDenied", "PERMISSION_DENIED"]);
});

test("a stream counts once towards its caller's rate, however much comes of it", async () => {
  const rate = { requests: 2, windowMs: 3_600_000, burst: 2 };
  const { begin } = await start({ rates: createRateLimits(rate, { clock: Date.now }) });
  await begin();
  await begin();
  await expect(begin().catch(reasonIn)).resolves.toEqual(["ResourceExhausted", "RATE_LIMITED"]);
});

test("one that is open takes no part of what its caller has for short calls", async () => {
  const admission = createAdmission({ clock: () => 0 });
  const held = vi.spyOn(admission, "hold");
  const { begin } = await start({ services: [{ desc: TickerService, transport: ticking, admission }] });
  await begin();
  expect(held).not.toHaveBeenCalled();
  for (let calls = 0; calls < 3 * START_LIMIT; calls++) admission.begin(TickerService.method.wait);
  await expect(begin().catch(reasonIn)).resolves.toEqual(["Unavailable", "OVERLOADED"]);
});

test("when the gateway stops it ends between two messages, its service is told, and the stop does not wait", async () => {
  const left = Promise.withResolvers<void>();
  const transport = servedInProcess(TickerService, {
    async *watch(_, { signal }) {
      signal.addEventListener("abort", () => left.resolve());
      yield { text: "first" };
      await forever();
    },
  });
  const { app, begin, draining } = await start({ transport });
  const { stream } = await begin();
  const closing = createClosing({ lameDuckMs: 0, endStreams: () => draining.abort(), ...realTime });
  const closed = closing.close(app);
  await expect(stream.next().catch(reasonIn)).resolves.toEqual(["Unavailable", "UNAVAILABLE"]);
  await left.promise;
  await closed;
});

test("nothing is left of one whose caller has gone", async () => {
  const { begin, draining } = await start();
  const { leave } = await begin();
  expect(getEventListeners(draining.signal, "abort").length).toBeGreaterThan(0);
  const before = getEventListeners(draining.signal, "abort").length;
  leave();
  await vi.waitUntil(() => getEventListeners(draining.signal, "abort").length < before, { timeout: 30_000 });
});

test("one whose service dies ends as UNAVAILABLE, and so does one for which no service is there", async () => {
  const service = await startTicker(async function* () {
    yield { text: "first" };
    await forever();
  });
  const transport = servedAt("", service.url);
  onTestFinished(() => transport.close());
  const { begin } = await start({ transport });
  const { stream } = await begin();
  const end = stream.next().catch(reasonIn);
  await service.close(0);
  expect(await end).toEqual(["Unavailable", "UNAVAILABLE"]);
  await expect(begin().catch(reasonIn)).resolves.toEqual(["Unavailable", "UNAVAILABLE"]);
});

test("a page of another origin may read it, where it may call at all", async () => {
  const { base } = await start({ cors: cors(["https://shop.example"]) });
  const path = `${base}/${TickerService.typeName}/Watch`;
  const origin = "https://shop.example";
  const asked = await fetch(path, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "content-type,connect-protocol-version",
    },
  });
  expect(asked.headers.get("access-control-allow-origin")).toBe(origin);
  expect(asked.headers.get("access-control-allow-headers")?.toLowerCase()).toContain("connect-protocol-version");
  const gone = new AbortController();
  const answer = await fetch(path, {
    method: "POST",
    headers: { origin, "content-type": "application/connect+json", "connect-protocol-version": "1" },
    body: Buffer.concat([Buffer.from([0, 0, 0, 0, 2]), Buffer.from("{}")]),
    signal: gone.signal,
  });
  expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([200, origin]);
  const { value } = (await answer.body?.getReader().read()) ?? {};
  expect(Buffer.from(value ?? []).toString()).toContain("first");
  gone.abort();
});
