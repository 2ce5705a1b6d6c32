/** What an operator or a later step plugs in: identity, permission, sunset, a base path, other plugins. */
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { HttpError } from "connect-transcoder";
import { afterEach, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import type { GatewayOptions } from "./app.ts";
import type { Auth } from "./auth.ts";
import { startGateway } from "./fixtures/gateway.ts";
import { newPet, petService } from "./fixtures/pets.ts";

let gateway: Awaited<ReturnType<typeof startGateway>>;
afterEach(() => gateway?.app.close());

let callers: (string | null)[] = [];
const implementation = {
  getPet(request: { petId: bigint }, context: { requestHeader: Headers }) {
    callers.push(context.requestHeader.get("x-internal-caller"));
    return { pet: { id: request.petId, name: "Rex", etag: '"1"' } };
  },
};

async function start(options: Partial<GatewayOptions>) {
  callers = [];
  gateway = await startGateway(PetService, implementation as never, options);
  return async (path: string, init?: RequestInit) => {
    const seen = await gateway.call(path, init);
    return {
      ...seen,
      code: seen.text.startsWith("{") ? (JSON.parse(seen.text).code as string | undefined) : undefined,
    };
  };
}

test("by default the caller is anonymous, whatever the request says", async () => {
  const call = await start({});
  await call("/pets/1", { headers: { "x-internal-caller": "root", "x-internal-secret": "x" } });
  expect(callers).toEqual(["anonymous"]);
});

const auth: Auth = {
  admit({ headers: { authorization: id } }, { name }, known) {
    if (!id) throw new HttpError("UNAUTHENTICATED", "Who are you?");
    known({ id });
    if (name !== "GetPet") throw new HttpError("PERMISSION_DENIED", `${id} may not ${name}.`);
    return { id };
  },
};
const slowAuth: Auth = { admit: async (...all) => auth.admit(...all) };

test.each([
  ["at once", auth],
  ["later", slowAuth],
])(
  "identity and permission, found out %s, come after the route and the sizes, before everything else",
  async (_, auth) => {
    const call = await start({ auth });
    const odd = { accept: "text/html", "x-server-timeout": "x" };
    expect(await call("/nowhere", { headers: odd })).toMatchObject({ code: "ROUTE_NOT_FOUND" });
    expect(await call("/pets", { headers: odd, method: "PUT" })).toMatchObject({ code: "METHOD_NOT_ALLOWED" });
    expect(await call(`/pets?${"x".repeat(9000)}`, { headers: odd })).toMatchObject({ code: "URI_TOO_LONG" });
    expect(await call("/pets/x", { headers: odd })).toMatchObject({ code: "UNAUTHENTICATED", status: 401 });
    const known = { ...odd, authorization: "ann" };
    expect(await call("/pets", { headers: known })).toMatchObject({ code: "PERMISSION_DENIED", status: 403 });
    expect(await call("/pets/x", { headers: known })).toMatchObject({ code: "NOT_ACCEPTABLE" });
    expect(await call("/pets/1", { headers: { authorization: "ann" } })).toMatchObject({ status: 200 });
    expect(callers).toEqual(["ann"]);
  },
);

test("dates of the end can be overridden, also to the end itself", async () => {
  const [deprecatedAt, sunsetAt] = [Date.UTC(2020, 0, 1), Date.UTC(2021, 0, 1)];
  const policy = { deprecatedAt, sunsetAt };
  const past = await start({ deprecation: policy });
  const goesOn = await past("/pets/1");
  expect(goesOn.status).toBe(200);
  expect(goesOn.headers.get("deprecation")).toBe("@1577836800");
  expect(goesOn.headers.get("sunset")).toBe("Fri, 01 Jan 2021 00:00:00 GMT");
  await gateway.app.close();

  const gone = await start({ deprecation: { ...policy, goneAfterSunset: true }, clock: () => sunsetAt });
  const ended = await gone("/pets/7");
  expect(ended).toMatchObject({ status: 410, code: "ENDPOINT_SUNSET" });
  expect(ended.headers.get("sunset")).toBe("Fri, 01 Jan 2021 00:00:00 GMT");
  expect(ended.headers.get("link")).toBe('</pets?id=7>; rel="successor-version"');
  await gateway.app.close();

  const notYet = await start({ deprecation: { ...policy, goneAfterSunset: true }, clock: () => sunsetAt - 1 });
  expect(await notYet("/pets/1")).toMatchObject({ status: 200 });
});

test("a created pet is found at the successor once the read by path has gone", async () => {
  const sunsetAt = Date.UTC(2030, 0, 1);
  let now = sunsetAt - 1;
  const post = {
    method: "POST",
    body: newPet,
    headers: { "content-type": "application/json", "idempotency-key": "again" },
  };
  const locations = async (options: Partial<GatewayOptions>) => {
    const { call, app } = await startGateway(PetService, petService as never, { ...options, clock: () => now });
    gateway = { call, app } as never;
    const found: (string | null)[] = [];
    for (now = sunsetAt - 1; now <= sunsetAt; now++)
      found.push((await call(`${options.basePath ?? ""}/pets`, post)).headers.get("location"));
    await app.close();
    return found;
  };
  const gone = { deprecation: { sunsetAt, goneAfterSunset: true } };
  expect(await locations(gone)).toEqual(["/pets/9", "/pets?id=9"]);
  expect(await locations({ ...gone, basePath: "/api" })).toEqual(["/api/pets/9", "/api/pets?id=9"]);
  expect(await locations({ deprecation: { sunsetAt } })).toEqual(["/pets/9", "/pets/9"]);
});

test("a sunset before the deprecation does not start", async () => {
  await expect(start({ deprecation: { sunsetAt: 0 } })).rejects.toThrow(/The sunset \(1970-.*\) must not be before/);
});

test("a base path", async () => {
  const call = await start({ basePath: "/api/v1" });
  expect(await call("/pets/1")).toMatchObject({ code: "ROUTE_NOT_FOUND" });
  const { status, headers } = await call("/api/v1/pets/1");
  expect(status).toBe(200);
  expect(headers.get("link")).toBe('</api/v1/pets?id=1>; rel="successor-version"');
  expect((await call("/api/v1/pets", { method: "OPTIONS" })).headers.get("allow")).toBe("GET, HEAD, OPTIONS, POST");
});

test("routes of plugins get OPTIONS, 405, HEAD and the error exit for free, and keep their own body parsers", async () => {
  const call = await start({
    plugins: [
      async (app) => {
        app.get("/healthz", async () => ({ status: "ok" }));
        app.post("/echo/:what", async ({ body }) => body);
        app.get("/crash", async () => {
          throw new Error("/srv/secret");
        });
      },
    ],
  });
  expect(await call("/healthz")).toMatchObject({ status: 200, text: '{"status":"ok"}' });
  expect(await call("/healthz", { method: "HEAD" })).toMatchObject({ status: 200, text: "" });
  const wrong = await call("/healthz", { method: "POST" });
  expect([wrong.status, wrong.code, wrong.headers.get("allow")]).toEqual([
    405,
    "METHOD_NOT_ALLOWED",
    "GET, HEAD, OPTIONS",
  ]);
  expect((await call("/echo/x", { method: "OPTIONS" })).headers.get("allow")).toBe("OPTIONS, POST");
  const body = '{"a":1}';
  const echo = await call("/echo/x", { method: "POST", body, headers: { "content-type": "application/json" } });
  expect(echo.text).toBe(body);
  const crash = await call("/crash");
  expect([crash.status, crash.code, crash.text.includes("secret")]).toEqual([500, "INTERNAL", false]);
  expect(crash.headers.get("x-request-id")).not.toBeNull();
});

test("hooks for every request see refused ones too", async () => {
  const call = await start({
    cors: {
      async register(app) {
        app.addHook("onRequest", async (_request, reply) => {
          reply.header("x-everywhere", "yes");
        });
      },
      headers: () => ({}),
    },
  });
  for (const path of ["/pets/1", "/pets/x", "/nowhere"])
    expect((await call(path)).headers.get("x-everywhere")).toBe("yes");
});

test("a call gets what is left of the request's time, in whole milliseconds", async () => {
  const given: (number | undefined)[] = [];
  let now = 0;
  const transport = {
    async unary(_method: unknown, _signal: unknown, timeoutMs: number | undefined): Promise<never> {
      given.push(timeoutMs);
      throw new Error();
    },
  };
  const call = await start({
    services: [{ desc: PetService, transport: transport as never }],
    clock: () => now,
    auth: {
      admit: () => {
        now += 1000;
        return { id: "slow" };
      },
    },
  });
  await call("/pets/1");
  await call("/pets/1", { headers: { "x-server-timeout": "1.0015" } });
  const late = await call("/pets/1", { headers: { "x-server-timeout": "0.5" } });
  expect([late.status, late.code]).toEqual([408, "REQUEST_TIMEOUT"]);
  expect(given).toEqual([9000, 2]); // what is over is not begun
});

test("what arrives while the gateway closes is not refused", async () => {
  await start({});
  let received: Socket | undefined;
  gateway.app.server.on("connection", (socket) => {
    received = socket;
  });
  const socket = connect(gateway.port, "127.0.0.1");
  const answer = text(socket);
  const request = "GET /pets/1 HTTP/1.1\r\nHost: x\r\n\r\n";
  socket.write(request.slice(0, 10));
  await expect.poll(() => received?.bytesRead, { timeout: 10_000 }).toBe(10);
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate); // until it was read
  const closed = gateway.app.close();
  await expect.poll(() => gateway.app.server.listening, { timeout: 10_000 }).toBe(false);
  socket.write(request.slice(10));
  await closed;
  expect(await answer).toMatch(/^HTTP\/1.1 200 /);
});

test("one line of log for each request, without its query", async () => {
  const call = await start({});
  gateway.log.length = 0;
  const { headers } = await call("/pets/1?token=secret");
  await expect.poll(() => gateway.log.length, { timeout: 10_000 }).toBe(1);
  expect(JSON.parse(gateway.log[0] as string)).toMatchObject({
    requestId: headers.get("x-request-id"),
    caller: "anonymous",
    method: "GET",
    path: "/pets/1",
    status: 200,
  });
});

test("the line of a request that another one's call answered names that one, and its own has nothing to name", async () => {
  await start({});
  gateway.log.length = 0;
  const ask = (id: string) =>
    gateway.app.inject({ url: "/pets/1", headers: { host: "localhost", "x-request-id": id } });
  await Promise.all([ask("first"), ask("second")]);
  expect(callers).toHaveLength(1);
  const lines = gateway.log.map((line) => JSON.parse(line));
  expect(lines.map(({ requestId, sharedWith }) => [requestId, sharedWith])).toEqual([
    ["first", undefined],
    ["second", "first"],
  ]);
});

test("two callers never share a call", async () => {
  await start({ auth });
  const ask = (authorization: string) =>
    gateway.app.inject({ url: "/pets/1", headers: { host: "localhost", authorization } });
  await Promise.all(["ann", "bob", "ann"].map(ask));
  expect(callers.toSorted()).toEqual(["ann", "bob"]);
});
