/** Callers from outside at a service's own port, where credentials are asked for. */
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import { OrderInternalService } from "../../../proto/gen/petstore/internal/v1/order_internal_service_pb.ts";
import { InventoryService } from "../../../proto/gen/petstore/inventory/v1/inventory_service_pb.ts";
import { createAuthentication } from "../auth/authentication.ts";
import { InvalidCredential } from "../auth/credentials.ts";
import { CALLER_HEADER, callHeaders, SECRET_HEADER } from "../call.ts";
import { createServiceTransport } from "../client/pipeline.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as Status,
} from "../gen/health/v1/health_pb.ts";
import { LinkService } from "../gen/link/internal/v1/link_service_pb.ts";
import { LINK_VERSION } from "../link/frames.ts";
import { createDispatcher } from "./dispatcher.ts";
import type { Implementation, UnaryHandler } from "./handlers.ts";
import { createHealth, healthService } from "./health.ts";
import { startRpcServer } from "./server.ts";

const secret = "a secret that is long enough";
/** By token. */
const known = new Map([
  ["reads", { id: "reader", scopes: new Set(["inventory:read"]) }],
  ["nothing", { id: "nobody", scopes: new Set<string>() }],
]);

async function start() {
  const callers: string[] = [];
  const logged: string[] = [];
  const handler: UnaryHandler = (_, { caller }) => {
    callers.push(caller);
    return {};
  };
  const services = [InventoryService, OrderInternalService].map(
    (desc): Implementation => ({
      desc,
      handlers: Object.fromEntries(desc.methods.map(({ localName }) => [localName, handler])),
      isDiagnostic: false,
    }),
  );
  const tokens = async (token: string) => {
    if (token === "bug") throw new TypeError("a fault of the verifier");
    const identity = known.get(token);
    if (!identity) throw new InvalidCredential("Not known here.");
    return identity;
  };
  const log = pino({ level: "debug" }, { write: (line: string) => logged.push(line) });
  const health = createHealth([]);
  const dispatcher = createDispatcher([...services, healthService(health)], {
    deps: { ...realTime, log },
    secret,
    errors,
    authentication: createAuthentication({ errors, realm: "petstore", tokens }),
  });
  const server = await startRpcServer({ host: "127.0.0.1", port: 0, log, dispatcher, health });
  onTestFinished(() => server.close(0));
  return { ...server, callers, logged };
}

const transports: Record<string, (baseUrl: string) => Transport> = {
  gRPC: (baseUrl) => createGrpcTransport({ baseUrl }),
  "gRPC-Web": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  Connect: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" }),
};
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const failure = async (answer: Promise<unknown>) => {
  const error = await answer.then(() => expect.fail("it was answered"), ConnectError.from);
  return [error.code, reasonOf(error)?.reason, error.metadata.get("www-authenticate")];
};

test.each(Object.entries(transports))("%s: who has the scope may call, and is told to the handler", async (_, open) => {
  const { url, callers } = await start();
  const inventory = createClient(InventoryService, open(url));
  await inventory.getInventory({ petId: 1n }, bearer("reads"));
  expect(callers).toEqual(["reader"]);
  expect(await failure(inventory.getInventory({ petId: 1n }))).toEqual([
    Code.Unauthenticated,
    "UNAUTHENTICATED",
    'Bearer realm="petstore"',
  ]);
  expect(await failure(inventory.getInventory({ petId: 1n }, bearer("guess")))).toEqual([
    Code.Unauthenticated,
    "UNAUTHENTICATED",
    'Bearer realm="petstore", error="invalid_token"',
  ]);
  expect(await failure(inventory.updateInventory({ petId: 1n }, bearer("reads")))).toEqual([
    Code.PermissionDenied,
    "PERMISSION_DENIED",
    'Bearer realm="petstore", error="insufficient_scope", scope="inventory:write"',
  ]);
  const internal = createClient(OrderInternalService, open(url));
  expect((await failure(internal.resolveReservations({}, bearer("reads"))))[1]).toBe("PERMISSION_DENIED");
  expect(callers).toEqual(["reader"]);
});

test("a fault of a verifier lets nobody in, and is no fault of the caller's", async () => {
  const { url, callers, logged } = await start();
  const inventory = createClient(InventoryService, (transports.Connect as (url: string) => Transport)(url));
  expect((await failure(inventory.getInventory({ petId: 1n }, bearer("bug"))))[1]).toBe("INTERNAL");
  expect(callers).toEqual([]);
  expect(logged.join()).toContain("a fault of the verifier");
});

test("the petstore's own processes need no credential, and speak for their callers", async () => {
  const { url, callers } = await start();
  for (const link of [true, false]) {
    const transport = createServiceTransport({ urls: [url], secret, link, errors, ...realTime });
    onTestFinished(() => transport.close());
    const headers = callHeaders({ id: "r", caller: "ann" });
    await createClient(InventoryService, transport).updateInventory(
      { petId: 1n, inventory: { quantity: 1 } },
      { headers },
    );
    await createClient(OrderInternalService, transport).resolveReservations({}, { headers });
  }
  expect(callers).toEqual(["ann", "ann", "ann", "ann"]);
});

test("who is known still can't name another caller", async () => {
  const { url, callers } = await start();
  const headers = { ...bearer("reads").headers, [CALLER_HEADER]: "ann", [SECRET_HEADER]: "a guess" };
  await createClient(InventoryService, createGrpcTransport({ baseUrl: url })).getInventory({ petId: 1n }, { headers });
  expect(callers).toEqual(["reader"]);
});

test("health answers everybody; reflection whoever is known; a link opens for nobody from outside", async () => {
  const { url } = await start();
  const transport = createGrpcTransport({ baseUrl: url });
  expect((await createClient(Health, transport).check({})).status).toBe(Status.SERVING);
  const ask = async (options: object) => {
    const questions = (async function* () {
      yield { messageRequest: { case: "listServices" as const, value: "" } };
    })();
    for await (const answer of createClient(ServerReflection, transport).serverReflectionInfo(questions, options))
      return answer;
  };
  expect((await ask(bearer("nothing")))?.messageResponse.case).toBe("listServicesResponse");
  expect((await failure(ask({})))[1]).toBe("UNAUTHENTICATED");
  expect((await failure(ask(bearer("guess"))))[1]).toBe("UNAUTHENTICATED");
  const openLink = async (options: object) => {
    const hello = { hello: { version: LINK_VERSION } };
    for await (const answer of createClient(LinkService, transport).link(createAsyncIterable([hello]), options))
      return answer;
  };
  for (const options of [{}, bearer("reads")]) expect((await failure(openLink(options)))[1]).toBe("PERMISSION_DENIED");
});

test("two credentials at once are none, over HTTP/1.1 and HTTP/2", async () => {
  const { port, url, callers } = await start();
  const path = `/${InventoryService.typeName}/GetInventory`;
  const socket = connect(port, "127.0.0.1");
  socket.end(
    `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 2\r\n` +
      "authorization: Bearer reads\r\nauthorization: Bearer nothing\r\n\r\n{}",
  );
  expect(await text(socket)).toMatch(/^HTTP\/1.1 401 .*invalid_token/s);

  const session = connectHttp2(url, { strictSingleValueFields: false } as object);
  onTestFinished(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/json",
    authorization: ["Bearer reads", "Bearer nothing"],
  } as never);
  stream.end("{}");
  expect(await text(stream)).toContain("UNAUTHENTICATED");
  expect(callers).toEqual([]);
});

test("who is not known is refused before the message is read", async () => {
  const { url, callers } = await start();
  const body = toBinary(HealthCheckRequestSchema, { $typeName: "grpc.health.v1.HealthCheckRequest", service: "x" });
  const answer = await fetch(`${url}/${InventoryService.typeName}/GetInventory`, {
    method: "POST",
    headers: { "content-type": "application/proto" },
    body: Buffer.concat([body, Buffer.from([0xff])]),
  });
  expect(answer.status).toBe(401);
  expect(callers).toEqual([]);
});
