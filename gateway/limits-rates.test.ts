import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { callerAddress } from "@petstore/rpc/http/hosts";
import { HttpError } from "connect-transcoder";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { reasonOf } from "#errors";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { cors } from "./cors.ts";
import { docs } from "./docs.ts";
import { emptyDocument, servedInProcess, startGateway, testLimits } from "./fixtures/gateway.ts";
import { createReadiness, health } from "./health.ts";
import { createRateLimits } from "./rates.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";

const ORIGIN = "https://shop.example";
let now = 0;
const clock = () => now;
let asked: bigint[] = [];
const implementation = {
  getPet: ({ petId }: { petId: bigint }) => {
    asked.push(petId);
    return { pet: { id: petId, name: "Rex", categoryId: 1n, status: 1, etag: '"1"' } };
  },
};

/** 20 requests in a minute, 3 of them at once: one more every three seconds. */
const rate = { requests: 20, windowMs: 60_000, burst: 3 };

const start = (auth?: Parameters<typeof startGateway>[2]) => {
  const services = [{ desc: PetService, transport: servedInProcess(PetService, implementation as never) }];
  return startGateway(PetService, implementation as never, {
    rates: createRateLimits(rate, { clock }),
    addressOf: callerAddress([{ address: "127.0.0.1", bits: 32 }]),
    cors: cors([ORIGIN]),
    plugins: [
      docs("", async () => emptyDocument),
      health("", createReadiness({ services: [], isAccepting: () => true, clock })),
      rpcEndpoint({
        basePath: "",
        services,
        limits: { rpcBytes: 1024, requestMs: testLimits.requestMs },
        clock: Date.now,
      }),
    ],
    ...auth,
  });
};

let gateway: Awaited<ReturnType<typeof start>>;
beforeEach(async () => {
  asked = [];
  gateway = await start();
});
afterEach(() => gateway.app.close());

const get = async (path = "/pets/1", headers: Record<string, string> = {}) => {
  const answer = await gateway.call(path, { headers });
  const [left, policy, after] = ["ratelimit", "ratelimit-policy", "retry-after"].map((name) =>
    answer.headers.get(name),
  );
  return { status: answer.status, left, policy, after, text: answer.text };
};

test("every answer says what remains; beyond the rate it is 429, and no service hears of it", async () => {
  const policy = '"default";q=20;w=60;burst=3';
  expect(await get()).toMatchObject({ status: 200, left: '"default";r=2;t=3', policy, after: null });
  expect(await get()).toMatchObject({ status: 200, left: '"default";r=1;t=6', policy });
  expect(await get()).toMatchObject({ status: 200, left: '"default";r=0;t=9', policy });
  const refused = await get();
  expect(refused).toMatchObject({ status: 429, left: '"default";r=0;t=9', policy, after: "3" });
  const message = "Only 20 requests in 60 s, 3 of them at once, are allowed: try again in 3 s.";
  expect(JSON.parse(refused.text)).toEqual({ code: "RATE_LIMITED", message, status: 429 });
  expect(asked).toEqual([1n, 1n, 1n]);
});

test("what it says is true to the second", async () => {
  for (let i = 0; i < 3; i++) await get();
  now += 1;
  expect(await get()).toMatchObject({ status: 429, after: "3", left: '"default";r=0;t=9' });
  now += 1999;
  expect(await get()).toMatchObject({ status: 429, after: "1", left: '"default";r=0;t=7' });
  now += 999;
  expect(await get()).toMatchObject({ status: 429, after: "1" });
  now += 1;
  expect(await get()).toMatchObject({ status: 200, left: '"default";r=0;t=9' });
  now += 9000;
  expect(await get()).toMatchObject({ status: 200, left: '"default";r=2;t=3' });
});

describe.each(Object.entries({ Connect: createConnectTransport, "gRPC-Web": createGrpcWebTransport }))(
  "%s",
  (_, open) => {
    test("counts together with HTTP, and is refused in its own form", async () => {
      const client = createClient(PetService, open({ baseUrl: gateway.base, httpVersion: "1.1" }));
      const seen: (string | null)[] = [];
      const onHeader = (headers: Headers) => seen.push(headers.get("ratelimit"));
      await client.getPet({ petId: 2n }, { onHeader });
      await get();
      await client.getPet({ petId: 2n }, { onHeader });
      expect(seen).toEqual(['"default";r=2;t=3', '"default";r=0;t=9']);
      const error = await client.getPet({ petId: 2n }).catch((thrown) => ConnectError.from(thrown));
      if (!(error instanceof ConnectError)) return expect.fail("it was allowed");
      expect([error.code, reasonOf(error)?.reason]).toEqual([Code.ResourceExhausted, "RATE_LIMITED"]);
      expect(["retry-after", "ratelimit"].map((name) => error.metadata.get(name))).toEqual(["3", '"default";r=0;t=9']);
      expect(asked).toEqual([2n, 1n, 2n]);
      expect(await get()).toMatchObject({ status: 429 });
    });
  },
);

test.each(["/nowhere", "/pets/"])("paths that there are not count, and are refused: %s", async (path) => {
  for (let i = 0; i < 3; i++) expect(await get(path)).toMatchObject({ status: 404 });
  expect(await get(path)).toMatchObject({ status: 429, after: "3" });
  expect(await get()).toMatchObject({ status: 429 });
});

test("who asks for the methods of a path counts, and is refused, also where pages of other origins may call", async () => {
  const ask = async () => (await gateway.call("/pets/1", { method: "OPTIONS" })).status;
  for (let i = 0; i < 3; i++) expect(await ask()).toBe(204);
  expect(await ask()).toBe(429);
  expect(await get()).toMatchObject({ status: 429 });
});

test("requests count that are refused before anybody asks who calls", async () => {
  for (let i = 0; i < 3; i++)
    expect(await get(`/pets?${"x".repeat(9000)}`)).toMatchObject({
      status: 414,
      left: `"default";r=${2 - i};t=${3 * (i + 1)}`,
    });
  expect(await get()).toMatchObject({ status: 429 });
});

test("what is open to all is never refused", async () => {
  for (let i = 0; i < 5; i++)
    for (const path of ["/healthz", "/openapi.json"])
      expect(await get(path)).toMatchObject({ status: 200, left: expect.any(String) });
  expect(await get()).toMatchObject({ status: 429 });
});

test("a page of another origin may ask beforehand without being counted, and reads why it is refused", async () => {
  const preflight = { method: "OPTIONS", headers: { origin: ORIGIN, "access-control-request-method": "GET" } };
  for (let i = 0; i < 5; i++) expect((await gateway.call("/pets/1", preflight)).status).toBe(204);
  for (let i = 0; i < 3; i++) expect(await get()).toMatchObject({ status: 200 });
  const refused = await gateway.call("/pets/1", { headers: { origin: ORIGIN } });
  expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([429, ORIGIN]);
  const exposed = refused.headers.get("access-control-expose-headers")?.toLowerCase().split(", ");
  expect(exposed).toEqual(expect.arrayContaining(["ratelimit", "ratelimit-policy", "retry-after"]));
});

test("callers behind a proxy that is trusted are told apart", async () => {
  const [ann, bob] = ["192.0.2.1", "192.0.2.2"].map((address) => ({ "x-forwarded-for": address }));
  for (let i = 0; i < 3; i++) await get("/pets/1", ann);
  expect(await get("/pets/1", ann)).toMatchObject({ status: 429 });
  expect(await get("/pets/1", bob)).toMatchObject({ status: 200 });
});

test("a caller who is known counts as itself, wherever it calls from", async () => {
  await gateway.app.close();
  gateway = await start({
    auth: {
      admit({ headers: { authorization: id } }, _method, known) {
        if (!id) throw new HttpError("UNAUTHENTICATED", "Who are you?");
        known({ id });
        if (id === "bob") throw new HttpError("PERMISSION_DENIED", "Bob may not.");
        return { id };
      },
    },
  });
  for (const address of ["192.0.2.1", "192.0.2.2", "192.0.2.3"])
    expect(await get("/pets/1", { authorization: "ann", "x-forwarded-for": address })).toMatchObject({ status: 200 });
  expect(await get("/pets/1", { authorization: "ann" })).toMatchObject({ status: 429 });
  // What a caller may not do counts, too.
  for (let i = 0; i < 3; i++) expect(await get("/pets/1", { authorization: "bob" })).toMatchObject({ status: 403 });
  expect(await get("/pets/1", { authorization: "bob" })).toMatchObject({ status: 429 });
  // Nobody known: the address counts, and is told what remains of it.
  expect(await get("/pets/1")).toMatchObject({ status: 401, left: '"default";r=2;t=3' });
});

test.each([
  ["Connect", "application/json", "{}", 401],
  ["gRPC-Web", "application/grpc-web+proto", "\0\0\0\0\0", 200],
  ["Connect, of what is no stream", "application/connect+json", "{}", 200],
  ["by a type that there is not", "text/plain", "{}", 415],
])("a call is counted that is refused before it is known who calls: %s", async (_, type, body, status) => {
  await gateway.app.close();
  gateway = await start({
    auth: {
      admit() {
        throw new HttpError("UNAUTHENTICATED", "Who are you?");
      },
    },
  });
  const init = { method: "POST", headers: { "content-type": type }, body };
  for (const left of ['"default";r=2;t=3', '"default";r=1;t=6', '"default";r=0;t=9', '"default";r=0;t=9']) {
    const answer = await gateway.call("/petstore.pet.v1.PetService/GetPet", init);
    expect([answer.status, answer.headers.get("ratelimit")]).toEqual([status, left]);
  }
  expect(asked).toEqual([]);
});

test("a caller may have a rate of its own, also where others have none", async () => {
  await gateway.app.close();
  const own = { requests: 60, windowMs: 60_000, burst: 1 };
  gateway = await start({
    rates: createRateLimits(undefined, { clock }),
    addressOf: callerAddress([]),
    auth: {
      admit({ headers: { authorization: id = "" } }, _method, known) {
        const caller = { id, ...(id === "ann" && { rate: own }) };
        known(caller);
        return caller;
      },
    },
  });
  expect(await get("/pets/1", { authorization: "ann" })).toMatchObject({ status: 200, left: '"default";r=0;t=1' });
  expect(await get("/pets/1", { authorization: "ann" })).toMatchObject({ status: 429, after: "1" });
  for (let i = 0; i < 5; i++)
    expect(await get("/pets/1", { authorization: "bob" })).toMatchObject({ status: 200, left: null });
});

test("without a rate nothing is counted, and nothing said", async () => {
  await gateway.app.close();
  gateway = await start({ rates: undefined });
  for (let i = 0; i < 5; i++) expect(await get()).toMatchObject({ status: 200, left: null, policy: null });
});
