/** What a full gateway refuses, when, and how; and what it answers all the same. */
import { once } from "node:events";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { text } from "node:stream/consumers";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { createAdmission, withAdmission } from "@petstore/rpc/admission/admission";
import { afterEach, describe, expect, test, vi } from "vitest";
import { errors, reasonOf } from "#errors";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { START_LIMIT } from "../packages/rpc/admission/limit.ts";
import type { GatewayOptions } from "./app.ts";
import { cors } from "./cors.ts";
import { sendRaw, servedInProcess, startGateway, testLimits } from "./fixtures/gateway.ts";
import { createReadiness, health } from "./health.ts";
import { createRateLimits } from "./rates.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";

const { listPets, getPet, createPet, updatePet } = PetService.method;
type Method = typeof listPets | typeof getPet | typeof createPet | typeof updatePet;

/** However slow the machine is. */
const until = (isSo: () => boolean) => vi.waitUntil(isSo, { timeout: 50_000 });

let gateway: Awaited<ReturnType<typeof startGateway>>;
afterEach(() => gateway.app.close());

async function start(options: Partial<GatewayOptions> = {}) {
  const calls: string[] = [];
  const held: PromiseWithResolvers<void>[] = [];
  const pet = { id: 1n, name: "Rex", categoryId: 1n, etag: '"1"' };
  const answer = (name: string) => async () => {
    calls.push(name);
    await Promise.all(held.map(({ promise }) => promise));
    return name === "listPets" ? { pets: [pet] } : { pet };
  };
  const rpcs = ["listPets", "getPet", "createPet", "updatePet"].map((name) => [name, answer(name)]);
  const admission = createAdmission({ clock: () => 0 });
  const all = servedInProcess(PetService, Object.fromEntries(rpcs));
  const services = [{ desc: PetService, transport: withAdmission(all, admission, errors), admission }];
  const serving = [{ name: "pet", replicas: () => [{ isServing: async () => true }] }];
  gateway = await startGateway(
    PetService,
    {},
    {
      services,
      plugins: [
        health("", createReadiness({ services: serving, isAccepting: () => true, clock: Date.now })),
        rpcEndpoint({
          basePath: "",
          services,
          limits: { rpcBytes: 64 * 1024, requestMs: testLimits.requestMs },
          clock: options.clock ?? Date.now,
        }),
      ],
      ...options,
    },
  );
  /** As others do who call. */
  const fill = (method: Method) => {
    const begun: ReturnType<typeof admission.begin>[] = [];
    while (!admission.isFull(method)) begun.push(admission.begin(method));
    return () => {
      for (const call of begun) admission.end(call, "nothing");
    };
  };
  const ask = async (path: string, init?: RequestInit) => {
    const { status, headers, text } = await gateway.call(path, init);
    const record = text.startsWith("{") ? JSON.parse(text) : undefined;
    return { status, headers, text, code: record?.code as string | undefined };
  };
  return { admission, calls, held, fill, ask };
}

const json = (method: string, body: string): RequestInit => ({
  method,
  body,
  headers: { "content-type": "application/json" },
});
const rex = JSON.stringify({ name: "Rex", categoryId: 1 });

test.each([
  ["until its answer closes", false],
  ["not at all when that has been", true],
])("a request counts among its caller's %s", async (_, closed) => {
  const { admission } = await start();
  const letIn = vi.spyOn(admission, "letIn");
  const raw = { headers: {}, socket: { remoteAddress: "127.0.0.1" } };
  const response = { closed, once() {} };
  gateway.app.admit({ raw, response } as never, getPet);
  expect(letIn).toHaveBeenCalledWith(getPet, expect.any(String), closed ? undefined : response);
});

test("lists are refused first, then reads, then what is created, and what changes something last", async () => {
  const { fill, ask } = await start();
  const requests = [
    () => ask("/pets"),
    () => ask("/pets/1"),
    () => ask("/pets", json("POST", rex)),
    () => ask("/pets/1", json("PUT", rex)),
  ];
  const statuses = async () => (await Promise.all(requests.map((request) => request()))).map(({ status }) => status);
  expect(await statuses()).toEqual([200, 200, 201, 200]);
  fill(listPets);
  expect(await statuses()).toEqual([503, 200, 201, 200]);
  fill(getPet);
  expect(await statuses()).toEqual([503, 503, 201, 200]);
  fill(createPet);
  expect(await statuses()).toEqual([503, 503, 503, 200]);
  const end = fill(updatePet);
  expect(await statuses()).toEqual([503, 503, 503, 503]);
  end();
  expect(await statuses()).toEqual([503, 503, 503, 200]);
});

test("a refusal says what every answer says, and when to come back", async () => {
  const { fill, ask } = await start();
  fill(listPets);
  const { status, headers, text } = await ask("/pets", { headers: { "x-request-id": "mine" } });
  const message = "There are too many requests under way. Nothing was done. Try again in a second.";
  expect(JSON.parse(text)).toEqual({ code: "OVERLOADED", message, status: 503 });
  expect(status).toBe(503);
  const named = ["retry-after", "x-request-id", "api-version", "cache-control", "content-type"];
  expect(named.map((name) => headers.get(name))).toEqual([
    "1",
    "mine",
    "1.0.0",
    "no-store",
    "application/json; charset=utf-8",
  ]);
});

describe("a refusal at once is the one that comes by way of Fastify, which a target with scheme and host takes", () => {
  async function both(options: Partial<GatewayOptions>, [verb, path, ...headers]: readonly string[]) {
    const { fill } = await start(options);
    fill(updatePet);
    const byFastify = () => gateway.log.filter((line) => JSON.parse(line).msg === "OVERLOADED").length;
    const ask = async (target: string) => {
      const lines = [`${verb} ${target} HTTP/1.1`, "host: localhost", "connection: close", ...headers, "", ""];
      return { answer: await sendRaw(gateway.port, lines.join("\r\n")), byFastify: byFastify() };
    };
    const early = await ask(path as string);
    const late = await ask(`http://localhost${path}`);
    expect([early.byFastify, late.byFastify]).toEqual([0, 1]);
    return [early.answer, late.answer] as const;
  }
  /** Without what is another each time. Names of fields have no case, and no order. */
  const sorted = (answer: string) =>
    answer
      .replace(/(date|x-request-id): (\w+, |[\da-f]{32}).*\r\n/gi, "")
      .split("\r\n")
      .map((line) => line.replace(/^[\w-]+:/, (name) => name.toLowerCase()))
      .sort();

  const origins = ["https://shop.example", "https://other.example"];
  test.each<[string, Partial<GatewayOptions>, ...string[]]>([
    ["a list", {}, "GET", "/pets"],
    ["a problem", {}, "GET", "/pets?limit=x", "accept: application/problem+json", "x-request-id: mine"],
    ["a problem rather than JSON", {}, "GET", "/pets", "accept: application/json;q=0.1, */*", "x-request-id: a b"],
    ["what is deprecated", {}, "GET", "/pets/7", "accept: text/html"],
    ["what is deprecated, without a successor", {}, "GET", "/pets/x"],
    ["a body that does not come", {}, "POST", "/pets", "content-length: 2", "expect: 100-continue"],
    ["behind a base path", { basePath: "/api" }, "DELETE", "/api/pets/1"],
    ["no page of another origin", { cors: cors(origins) }, "GET", "/pets"],
    ["a page that may call", { cors: cors(origins) }, "GET", "/pets", "origin: https://other.example"],
    ["a page that may not", { cors: cors(origins) }, "GET", "/pets", "origin: https://evil.example"],
    ["any page", { cors: cors(["*"]) }, "GET", "/pets", "origin: https://evil.example"],
  ])("%s", async (_, options, ...request) => {
    const [early, late] = await both(options, request);
    expect(early).toMatch(/^HTTP\/1.1 503 /m);
    expect(sorted(early)).toEqual(sorted(late));
  });

  test("both count against the rate of the address", async () => {
    const rates = createRateLimits({ requests: 100, windowMs: 60_000, burst: 100 }, { clock: () => 1_000 });
    const answers = await both({ rates }, ["GET", "/pets"]);
    expect(answers.map((answer) => /ratelimit: .*r=(\d+)/.exec(answer)?.[1])).toEqual(["99", "98"]);
    expect(answers.every((answer) => answer.includes('ratelimit-policy: "default";q=100;w=60\r\n'))).toBe(true);
  });

  test("over HTTP/2 it is the same", async () => {
    const { fill, ask } = await start();
    fill(updatePet);
    const session = connect(gateway.base);
    const stream = session.request({ ":method": "POST", ":path": "/pets", "x-request-id": "mine" }).end("{}");
    const [head] = (await once(stream, "response")) as [IncomingHttpHeaders];
    const body = await text(stream);
    session.destroy();
    const other = await ask("/pets", { method: "POST", body: "{}", headers: { "x-request-id": "mine" } });
    expect([head[":status"], body]).toEqual([503, other.text]);
    const ofConnection = [":status", "date", "connection", "keep-alive"];
    const named = (fields: Iterable<[string, unknown]>) => [...fields].filter(([name]) => !ofConnection.includes(name));
    expect(named(Object.entries(head)).sort()).toEqual(named(other.headers).sort());
  });

  test.each(["/pets/", "/pets/1/", "/nowhere", "//pets", "/PETS"])(
    "there is none for %s, which is no route",
    async (path) => {
      const { fill } = await start();
      fill(updatePet);
      expect(await sendRaw(gateway.port, `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`)).toMatch(/^HTTP\/1.1 404 /);
    },
  );
});

test("it comes after the route and before anything else: credentials, headers, the body", async () => {
  let asked = 0;
  const auth: GatewayOptions["auth"] = {
    admit(_request, _method, known) {
      asked++;
      known({ id: "ann" });
      return { id: "ann" };
    },
  };
  const { fill, ask, calls } = await start({ auth });
  fill(updatePet);
  expect((await ask("/nowhere")).code).toBe("ROUTE_NOT_FOUND");
  expect((await ask("/pets", { method: "PUT" })).code).toBe("METHOD_NOT_ALLOWED");
  expect((await ask("/pets/x?y=z", { headers: { accept: "text/html", "x-server-timeout": "x" } })).code).toBe(
    "OVERLOADED",
  );
  expect((await ask("/pets", json("POST", "no JSON"))).code).toBe("OVERLOADED");
  expect([asked, calls]).toEqual([0, []]);
});

const transports: Record<string, (baseUrl: string) => Transport> = {
  Connect: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" }),
  "gRPC-Web": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
};
test.each(Object.keys(transports))("over %s it is UNAVAILABLE because of OVERLOADED", async (protocol) => {
  const { fill, calls } = await start();
  fill(listPets);
  const client = createClient(PetService, (transports[protocol] as (typeof transports)[string])(gateway.base));
  const failure = await client.listPets({}).catch(ConnectError.from);
  if (!(failure instanceof ConnectError)) return expect.unreachable();
  expect([failure.code, reasonOf(failure)?.reason]).toEqual([Code.Unavailable, "OVERLOADED"]);
  expect(failure.metadata.get("retry-after")).toBe("1");
  expect(calls).toEqual([]);
  expect((await client.getPet({ petId: 1n })).pet?.name).toBe("Rex");
});

test("health answers, however full it is", async () => {
  const { fill, ask } = await start();
  fill(updatePet);
  expect((await ask("/healthz")).status).toBe(200);
  expect((await ask("/readyz")).status).toBe(200);
});

test("requests that come at once are counted as they are called, and beyond the limit only those that were read together are", async () => {
  const { ask, held, admission, calls } = await start();
  const free = 3;
  for (let i = 0; i < START_LIMIT; i++) admission.hold("127.0.0.1"); // the same caller's
  const begun = [];
  while (admission.hasRoom(getPet)) begun.push(admission.begin(getPet));
  for (const call of begun.splice(-free)) admission.end(call, "nothing");
  held.push(Promise.withResolvers<void>());
  let refused = 0;
  const answers = Array.from({ length: 20 }, async (_, i) => {
    const { status } = await ask(`/pets/${i + 1}`);
    if (status === 503) refused++;
    return status;
  });
  await until(() => calls.length + refused === 20);
  const called = calls.length;
  expect(called).toBeGreaterThanOrEqual(free);
  expect(called).toBeLessThan(free + 8);
  held[0]?.resolve();
  expect((await Promise.all(answers)).filter((status) => status === 200).length).toBe(called);
  expect(admission.underWay()).toBe(begun.length);
});

test("who asks for everything is refused, and keeps nobody else out", async () => {
  const { ask, held, calls } = await start({ addressOf: ({ headers }) => headers["x-from"] as string });
  held.push(Promise.withResolvers<void>());
  let asked = 0; // each for something else: requests for the same share their call
  const as = (caller: string) => ask(`/pets?categoryId=${++asked}`, { headers: { "x-from": caller } });
  let refused = 0;
  const greedy = Array.from({ length: START_LIMIT + 50 }, async () => {
    if ((await as("greedy")).status === 503) refused++;
  });
  await until(() => calls.length + refused === START_LIMIT + 50);
  expect(calls.length).toBeGreaterThanOrEqual(START_LIMIT);
  expect(refused).toBeGreaterThan(0);
  const most = calls.length;
  const modest = Array.from({ length: 10 }, () => as("modest"));
  await until(() => calls.length === most + 10);
  held[0]?.resolve();
  for (const { status } of await Promise.all(modest)) expect(status).toBe(200);
  await Promise.all(greedy);
  // What is over counts for nobody any more.
  expect((await as("greedy")).status).toBe(200);
});

test("what is refused is told in few lines of the log, what is answered in one each", async () => {
  const { fill, ask } = await start({ clock: () => 1_000 });
  fill(listPets);
  for (let i = 0; i < 5; i++) await ask("/pets");
  await ask("/pets/1");
  interface Line {
    readonly level: number;
    readonly path?: string;
    readonly refused?: object;
  }
  const lines = gateway.log.map((line) => JSON.parse(line) as Line).filter(({ level }) => level > 20);
  expect(lines.flatMap(({ level, refused }) => (level > 30 ? [refused] : []))).toEqual([{ list: 1 }]);
  expect(lines.flatMap(({ path }) => (path === undefined ? [] : [path]))).toEqual(["/pets/1"]);
});

test("a request whose time was over before its body had arrived is not begun", async () => {
  let now = 1_000;
  const { ask, calls } = await start({
    clock: () => now,
    auth: {
      admit(_request, _method, known) {
        now += 200; // as a body that arrives slowly
        known({ id: "ann" });
        return { id: "ann" };
      },
    },
  });
  const late = await ask("/pets/1", { headers: { "x-server-timeout": "0.1" } });
  expect([late.status, late.code]).toEqual([408, "REQUEST_TIMEOUT"]);
  expect(JSON.parse(late.text).message).toMatch(/Nothing was done\.$/);
  expect((await ask("/pets/1", { headers: { "x-server-timeout": "1" } })).status).toBe(200);
  expect(calls).toEqual(["getPet"]);
});

test("nor is an RPC, whose time the gateway limits as well", async () => {
  let now = 1_000;
  const clock = () => now;
  const { calls } = await start({
    clock,
    auth: {
      admit(_request, _method, known) {
        now += testLimits.requestMs;
        known({ id: "ann" });
        return { id: "ann" };
      },
    },
  });
  const client = createClient(PetService, createConnectTransport({ baseUrl: gateway.base, httpVersion: "1.1" }));
  const failure = await client.getPet({ petId: 1n }).catch(ConnectError.from);
  if (!(failure instanceof ConnectError)) return expect.unreachable();
  expect(reasonOf(failure)?.reason).toBe("REQUEST_TIMEOUT");
  expect(calls).toEqual([]);
});
