/** Every reason of the catalogue is provoked, at the HTTP status and with the gRPC code that the catalogue gives it. */
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { getOption } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, createRouterTransport, type Transport } from "@connectrpc/connect";
import { createAuthentication } from "@petstore/rpc/auth/authentication";
import { createDispatcher } from "@petstore/rpc/server/dispatcher";
import { implement } from "@petstore/rpc/server/handlers";
import { realTime } from "@petstore/runtime/clock";
import { error as errorKind } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { errors, reasonOf } from "#errors";
import { ErrorReasonSchema } from "#proto/petstore/common/v1/error_reason_pb.ts";
import { InventoryInternalService } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { authOf } from "../../gateway/auth.ts";
import { recordIn, sendRaw, servedInProcess, startGateway } from "../../gateway/fixtures/gateway.ts";
import { limitCalls, withCallLimit } from "../../packages/rpc/link/client.ts";
import type { Reason } from "../../services/records/errors.ts";
import { writeResumeToken } from "../../services/records/watch.ts";
import { dyingAt } from "../faults/crash-at-failpoint.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";
import { cases } from "./cases/all.ts";
import { call, codeName } from "./cases/case.ts";
import { checkTellsNoSecrets, sendHttp, sendRpc } from "./cases/endpoints.ts";
import { openShop, type Shop } from "./cases/shop.ts";

/** What was seen at each endpoint: "503 UNAVAILABLE" and "UNAVAILABLE UNAVAILABLE". */
interface Seen {
  readonly http?: string;
  readonly rpc?: string;
}

const GET_PET = "/petstore.pet.v1.PetService/GetPet";

/** Has a gRPC code for completeness, but no RPC can fail so. */
const neverOverRpc: Partial<Record<Reason, string>> = {
  MALFORMED_JSON: "protobuf messages are not JSON, and Connect's JSON has its own errors",
  INVALID_ID: "RPCs have no path parameters: a violated rule is VALIDATION_FAILED",
  INVALID_QUERY: "RPCs have no query: a violated rule is VALIDATION_FAILED",
  INVALID_HEADER: "RPCs carry these in the message: a violated rule is VALIDATION_FAILED",
  UNKNOWN_FIELD: "protobuf keeps unknown fields",
  MISDIRECTED_REQUEST: "the request is refused before it is known to be an RPC",
  NOT_IMPLEMENTED: "the request is refused before it is known to be an RPC",
  ENDPOINT_SUNSET: "the RPC is not deprecated",
  UPSTREAM_ERROR: "the gateway says so of a service; callers of the service see what it said",
};

let petstore: Petstore;
let shop: Shop;
beforeAll(async () => {
  petstore = await startPetstore();
  shop = openShop(petstore);
});
afterAll(() => petstore?.stop());

const http = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
  const { status, text } = await sendHttp(petstore.http, { method, path, headers, body });
  return told(status, text);
};
function told(status: number, text: string): string {
  checkTellsNoSecrets(text);
  const record = JSON.parse(text);
  expect(record).toEqual({ code: expect.any(String), message: expect.stringMatching(/./), status });
  return `${status} ${record.code}`;
}
const rpc = async (transport: Transport, one: ReturnType<typeof call>) => {
  const seen = await sendRpc(transport, one);
  if (!(seen instanceof ConnectError)) throw new Error(`no error, but ${JSON.stringify(seen.message)}`);
  checkTellsNoSecrets(seen.rawMessage);
  return `${codeName(seen.code, Code)} ${reasonOf(seen)?.reason}`;
};

/** What takes more than a call to provoke. In this order: each leaves the petstore as it found it. */
const provoke: Partial<Record<Reason, () => Promise<Seen>>> = {
  // An internal RPC, of which the gateway knows nothing.
  ROUTE_NOT_FOUND: async () => ({
    http: await http("GET", "/nowhere"),
    rpc: await rpc(petstore.endpoint, call(InventoryInternalService.method.open, { petId: 1n, listing: 1 })),
  }),

  UNAUTHENTICATED: () => asked({}),
  PERMISSION_DENIED: () => asked({ "x-api-key": "psk_of a caller without any scope" }),

  UNSUPPORTED_MEDIA_TYPE: async () => ({
    http: await http("POST", "/categories", {}, { "content-type": "text/plain" }),
    rpc: await overConnect(petstore.url("pet") + GET_PET, "{}", 0, "application/json;charset=x"),
  }),

  MISDIRECTED_REQUEST: () => askedRaw("GET /pets HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
  REQUEST_TIMEOUT: async () => ({
    ...(await askedRaw("GET /pets HTTP/1.1\r\nHost: localhost\r\n")),
    rpc: await overConnect(petstore.http + GET_PET, "{}", 1000),
  }),

  async TOO_MANY_OPEN_ORDERS() {
    const { id } = await shop.stocked(2000);
    // Few at a time: all that are sent together must be answered in the time that one has.
    for (let placed = 0; placed < 1000; placed += 20)
      await Promise.all(Array.from({ length: 20 }, () => shop.order({ petId: id })));
    const seen = {
      http: await http("POST", "/store/orders", { petId: Number(id) }),
      rpc: await refusal(shop.order({ petId: id })),
    };
    expect((await shop.stockOf(id)).quantity).toBe(1000);
    return seen;
  },

  async DEADLINE_EXCEEDED() {
    const { id } = await shop.category();
    await petstore.kill("inventory", "SIGSTOP");
    try {
      // At once, for a service that says nothing for long is found out.
      const [seen, rpc] = await Promise.all([
        http("POST", "/pets", { name: "Rex", categoryId: Number(id) }, { "x-server-timeout": "0.5" }),
        overConnect(
          `${petstore.url("pet")}/petstore.pet.v1.PetService/CreatePet`,
          JSON.stringify({ pet: { name: "Rex", categoryId: `${id}` } }),
        ),
      ]);
      return { http: seen, rpc };
    } finally {
      await petstore.kill("inventory", "SIGCONT");
    }
  },

  async UNAVAILABLE() {
    await petstore.kill("inventory", "SIGKILL");
    const { id } = await shop.category();
    const seen = { http: await http("GET", "/store/inventory/1"), rpc: await refusal(shop.pet({ categoryId: id })) };
    const ready = await sendHttp(petstore.http, { method: "GET", path: "/readyz" });
    expect([ready.status, JSON.parse(ready.text)]).toEqual([200, { status: "ready", failing: ["inventory"] }]);
    expect((await sendHttp(petstore.http, { method: "GET", path: "/healthz" })).status).toBe(200);
    await petstore.start("inventory");
    return seen;
  },

  // A deletion dies between closing the gate and its decision; as long as Category can't ask Pet, it stays undecided.
  async CONCURRENT_UPDATE() {
    const { id } = await shop.category();
    await dyingAt(petstore, "category", "category.closed", async () => {
      expect(await http("DELETE", `/categories/${id}`)).toBe("503 UNAVAILABLE");
      return { is: "unknown" };
    });
    await petstore.start("category", { PET_URL: "http://127.0.0.1:9" });
    const seen = {
      http: await http("POST", "/pets", { name: "Rex", categoryId: Number(id) }),
      rpc: await refusal(shop.pet({ categoryId: id })),
    };
    await petstore.kill("category");
    await petstore.start("category");
    return seen;
  },

  async RATE_LIMITED() {
    await petstore.kill("gateway");
    await petstore.start("gateway", { RATE_LIMIT: "1/h;burst=2" });
    for (let i = 0; i < 2; i++) expect(await http("GET", "/pets/x")).toBe("400 INVALID_ID");
    const seen = {
      http: await http("GET", "/pets/1"),
      rpc: await rpc(petstore.endpoint, call(PetService.method.getPet, { petId: 1n })),
    };
    await petstore.kill("gateway");
    await petstore.start("gateway");
    return seen;
  },

  async ENDPOINT_SUNSET() {
    await petstore.kill("gateway");
    await petstore.start("gateway", {
      DEPRECATED_AT: "2020-01-01",
      SUNSET_AT: "2020-12-31T23:59:59Z",
      AFTER_SUNSET: "gone",
    });
    const { headers, status, text } = await sendHttp(petstore.http, { method: "GET", path: "/pets/1" });
    expect(headers).toMatchObject({ deprecation: "@1577836800", sunset: "Thu, 31 Dec 2020 23:59:59 GMT" });
    expect((await sendHttp(petstore.http, { method: "GET", path: "/pets?id=1" })).status).toBe(200);
    await petstore.kill("gateway");
    await petstore.start("gateway");
    return { http: told(status, text) };
  },

  async OVERLOADED() {
    const never = { unary: () => new Promise<never>(() => {}), stream: () => new Promise<never>(() => {}) };
    const transport = withCallLimit(never as Transport, limitCalls(errors));
    const gateway = await startGateway(PetService, {}, { services: [{ desc: PetService, transport }] });
    const waiting = Array.from({ length: 10_000 }, () =>
      transport.unary(PetService.method.getPet, undefined, undefined, undefined, { petId: 1n }),
    );
    const { status, headers, text } = await gateway.call("/pets/1");
    expect(headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
    const seen = {
      http: told(status, text),
      rpc: await rpc(transport, call(PetService.method.getPet, { petId: 1n })),
    };
    expect(waiting).toHaveLength(10_000);
    await gateway.app.close();
    return seen;
  },

  async EVENTS_EXPIRED() {
    const resumeToken = writeResumeToken("pet", { position: "long ago" });
    const watch = petstore.client(PetService).watchPets({ resumeToken });
    return { ...(await said("EVENTS_EXPIRED")), rpc: await refusal(Array.fromAsync(watch)) };
  },
  SLOW_CONSUMER: () => said("SLOW_CONSUMER"),
  TOO_MANY_STREAMS: () => said("TOO_MANY_STREAMS"),

  async UPSTREAM_ERROR() {
    const gateway = await startGateway(PetService, {
      getPet: () => {
        throw new ConnectError("E11000 at /srv/driver.js:1:1", Code.Unimplemented);
      },
    });
    const { status, text } = await gateway.call("/pets/1");
    await gateway.app.close();
    return { http: told(status, text) };
  },

  async INTERNAL() {
    const log = pino({ level: "silent" });
    const fail = () => {
      throw new TypeError("Cannot read properties of undefined at /srv/pet.ts:1:1");
    };
    const handlers = new Proxy({}, { get: () => fail }) as never;
    const dispatcher = createDispatcher([implement(PetService, handlers)], {
      deps: { ...realTime, log },
      secret: "",
      errors,
    });
    const transport = createRouterTransport(dispatcher.routes);
    const gateway = await startGateway(PetService, {}, { services: [{ desc: PetService, transport }] });
    const { status, text, headers } = await gateway.call("/pets/1");
    expect(JSON.parse(text).message).toContain(headers.get("x-request-id"));
    await gateway.app.close();
    return { http: told(status, text), rpc: await rpc(transport, call(PetService.method.getPet, { petId: 1n })) };
  },
};

async function askedRaw(request: string): Promise<Seen> {
  const answer = await sendRaw(Number(new URL(petstore.http).port), request, { end: false });
  return { http: told(Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]), JSON.stringify(recordIn(answer))) };
}

/** What a service says, as it arrives at either endpoint. */
async function said(reason: Reason): Promise<Seen> {
  const getPet = () => {
    throw errors.rpcError(reason, "As it is.");
  };
  const gateway = await startGateway(PetService, { getPet });
  const { status, text } = await gateway.call("/pets/1");
  await gateway.app.close();
  const transport = servedInProcess(PetService, { getPet });
  return { http: told(status, text), rpc: await rpc(transport, call(PetService.method.getPet, { petId: 1n })) };
}

/** Of a gateway and a service that ask callers who they are. */
async function asked(headers: Record<string, string>): Promise<Seen> {
  const apiKeys = () => ({ id: "key:ann", scopes: new Set<string>() });
  const authentication = createAuthentication({ errors, realm: "petstore", apiKeys });
  const handlers = new Proxy({}, { get: () => () => ({}) }) as never;
  const dispatcher = createDispatcher([implement(PetService, handlers)], {
    deps: { ...realTime, log: pino({ level: "silent" }) },
    secret: "",
    errors,
    authentication,
  });
  const gateway = await startGateway(PetService, {}, { auth: authOf(authentication) });
  const { status, text } = await gateway.call("/pets/1", { headers });
  await gateway.app.close();
  const pets = createClient(PetService, createRouterTransport(dispatcher.routes));
  return { http: told(status, text), rpc: await refusal(pets.getPet({ petId: 1n }, { headers })) };
}

async function refusal(made: Promise<unknown>): Promise<string> {
  const error = ConnectError.from(
    await made.then(
      () => new Error("no error"),
      (thrown) => thrown,
    ),
  );
  checkTellsNoSecrets(error.rawMessage);
  return `${codeName(error.code, Code)} ${reasonOf(error)?.reason}`;
}

/** Without a client, which would keep the time itself. The body follows `pauseMs` after its head has been read. */
async function overConnect(url: string, body: string, pauseMs = 0, type = "application/json"): Promise<string> {
  const headers = { "content-type": type, "connect-timeout-ms": "500", "content-length": body.length };
  const expected = pauseMs > 0 && { expect: "100-continue" };
  const request = httpRequest(url, { method: "POST", headers: { ...headers, ...expected } });
  request.flushHeaders();
  if (expected) await once(request, "continue");
  await sleep(pauseMs);
  const [response] = await once(request.end(body), "response");
  const { code, details } = JSON.parse(await textOf(response)) as {
    code: string;
    details: { debug?: { reason?: string } }[];
  };
  return `${code.toUpperCase()} ${details.map(({ debug }) => debug?.reason).join()}`;
}

const reasons = ErrorReasonSchema.values
  .filter(({ number }) => number !== 0)
  .map((value) => {
    const reason = value.localName as Reason;
    const { httpStatus, grpcCode } = getOption(value, errorKind);
    return { reason, http: `${httpStatus} ${reason}`, rpc: grpcCode && `${grpcCode} ${reason}` };
  });
const inCases = Object.values(cases)
  .flat()
  .flatMap(({ fails }) => (fails ? [fails] : []));

test("the catalogue is read", () => {
  expect(reasons.length).toBeGreaterThanOrEqual(38);
  expect(reasons).toContainEqual({
    reason: "ETAG_MISMATCH",
    http: "412 ETAG_MISMATCH",
    rpc: "ABORTED ETAG_MISMATCH",
  });
});

test.each(reasons.filter(({ reason }) => provoke[reason]))(
  "$reason",
  { timeout: 180_000 },
  async ({ reason, http, rpc }) => {
    const seen = (await provoke[reason]?.()) ?? {};
    expect(seen).toEqual({
      http,
      ...(reason in neverOverRpc ? {} : { rpc }),
    });
  },
);

test.each(reasons.filter(({ reason }) => !provoke[reason]))("$reason, by a case", ({ reason, http, rpc }) => {
  expect(inCases.map((fails) => fails.http)).toContain(http);
  const overRpc = rpc === "" || reason in neverOverRpc;
  if (!overRpc) expect(inCases.map((fails) => fails.rpc)).toContain(rpc);
});

test("no case expects a status or a code that the catalogue does not give to its reason", () => {
  const known = new Set(reasons.flatMap(({ http, rpc }) => [http, rpc]));
  const strange = inCases.flatMap(({ http, rpc }) => [http, rpc]).filter((one) => one !== undefined && !known.has(one));
  expect(strange).toEqual([]);
});

test("what no RPC can fail with is in the catalogue", () => {
  expect(reasons.map(({ reason }) => reason)).toEqual(expect.arrayContaining(Object.keys(neverOverRpc)));
});
