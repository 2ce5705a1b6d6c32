/** Own processes that know each other by certificates instead of a secret. */
import { ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { createServiceTransport, type ServiceTransportOptions } from "@petstore/rpc/client/pipeline";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { errors } from "../../../processes/errors.ts";
import {
  CategoryInternalService,
  CategoryState,
} from "../../../proto/gen/petstore/internal/v1/category_internal_service_pb.ts";
import type { Authority, Pair } from "../../../scripts/certificates.ts";
import { CALLER_HEADER, type Call, SECRET_HEADER } from "../call.ts";
import { watchRequests } from "../fixtures/linked.ts";
import { newAuthority, openFiles, PEER_NAME, pairOf, yesterday } from "../fixtures/tls.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/health/v1/health_pb.ts";
import { LinkService } from "../gen/link/internal/v1/link_service_pb.ts";
import { createDispatcher } from "./dispatcher.ts";
import { implement } from "./handlers.ts";
import { createHealth, healthService } from "./health.ts";
import { startRpcServer } from "./server.ts";

let authority: Authority;
let own: Pair;
const seen: Call[] = [];
beforeAll(async () => {
  authority = await newAuthority();
  own = await pairOf(authority);
});
afterEach(() => void seen.splice(0));

async function start(secret?: string, pair = own) {
  const files = await openFiles({ ...pair, ca: authority.cert });
  const log = pino({ level: "silent" });
  const health = createHealth([]);
  const service = implement(CategoryInternalService, {
    getCategoryState: (_, call) => {
      seen.push(call);
      return { state: CategoryState.ACTIVE };
    },
  });
  const services = [service, healthService(health)];
  const dispatcher = createDispatcher(services, { deps: { ...realTime, log }, errors, secret });
  const tls = { certificates: files.certificates, peerNames: [PEER_NAME] };
  const server = await startRpcServer({ host: "127.0.0.1", port: 0, log, dispatcher, health, tls });
  onTestFinished(() => server.close(0));
  return { ...files, url: server.url };
}

interface Shown {
  readonly pair?: Pair;
  readonly trusts?: string;
  readonly secret?: string;
  readonly link?: boolean;
  readonly clock?: () => number;
  readonly log?: ServiceTransportOptions["log"];
  readonly lookup?: ServiceTransportOptions["lookup"];
}

/** Another process of the system, with what it shows. */
async function processAt(url: string, { pair = own, trusts = authority.cert, ...options }: Shown = {}) {
  const files = await openFiles({ ...pair, ca: trusts });
  const transport = createServiceTransport({
    urls: [url],
    certificates: files.certificates,
    errors,
    ...realTime,
    ...options,
  });
  onTestFinished(() => transport.close());
  return { ...files, transport };
}
const ask = (transport: Transport, headers = {}) =>
  createClient(CategoryInternalService, transport).getCategoryState({ categoryId: 1n }, { headers });
const refusal = async (call: Promise<unknown>) =>
  ConnectError.from(
    await call.then(
      () => expect.fail("it was answered"),
      (error) => error,
    ),
  ).rawMessage;

describe("a process with a certificate of the authority and the name of own processes", () => {
  test.each([true, false])("may call internal RPCs and name its caller, link: %s", async (link) => {
    const { url } = await start();
    const { transport } = await processAt(url, { link });
    const all = watchRequests();
    for (const caller of ["key:ann", "key:ben"])
      expect((await ask(transport, { [CALLER_HEADER]: caller })).state).toBe(CategoryState.ACTIVE);
    expect(seen).toMatchObject([{ caller: "key:ann" }, { caller: "key:ben" }]);
    // Where an answer is late, as on a busy machine, it is asked whether the service is there at all.
    const sent = all.filter((name) => name !== Health.method.check.name);
    expect(sent).toEqual(link ? ["Link"] : ["GetCategoryState", "GetCategoryState"]);
  });

  test.each([
    ["gRPC", "2", createGrpcTransport],
    ["gRPC-Web", "1.1", createGrpcWebTransport],
    ["gRPC-Web", "2", createGrpcWebTransport],
    ["Connect", "1.1", createConnectTransport],
    ["Connect", "2", createConnectTransport],
  ] as const)("is known over %s by HTTP/%s", async (_, httpVersion, create) => {
    const { url } = await start();
    const nodeOptions = { ca: authority.cert, ...own };
    const transport = create({ baseUrl: url, httpVersion, nodeOptions } as never);
    expect((await ask(transport)).state).toBe(CategoryState.ACTIVE);
    const stranger = create({ baseUrl: url, httpVersion, nodeOptions: { ca: authority.cert } } as never);
    expect(await refusal(ask(stranger, { [SECRET_HEADER]: "" }))).toBe("This RPC is for the petstore's own services.");
    const health = createClient(Health, stranger);
    expect((await health.check({})).status).toBe(Status.SERVING);
  });

  test("shows another one when the files have changed, within a minute, on a connection of its own", async () => {
    const { url } = await start();
    const stranger = await pairOf(authority, { names: ["elsewhere"] });
    let now = 0;
    const { transport, exchange, certificates } = await processAt(url, { pair: stranger, clock: () => now });
    expect(await refusal(ask(transport))).toContain("own services");
    await exchange({ ...own, ca: authority.cert });
    await certificates.reload();
    now = 60_000;
    expect((await ask(transport)).state).toBe(CategoryState.ACTIVE);
  });

  test("is believed within a minute when the service can verify it", async () => {
    const another = await newAuthority("another");
    const { url, exchange, certificates } = await start();
    let now = 0;
    const pair = await pairOf(another);
    const { transport } = await processAt(url, { pair, clock: () => now });
    expect(await refusal(ask(transport))).toContain("own services");
    await exchange({ ...own, ca: authority.cert + another.cert });
    await certificates.reload();
    now = 60_000;
    expect((await ask(transport)).state).toBe(CategoryState.ACTIVE);
  });
});

describe("internal RPCs are refused to", () => {
  test.each<[string, () => Promise<Shown>]>([
    ["another name", async () => ({ pair: await pairOf(authority, { names: ["localhost", "127.0.0.1"] }) })],
    ["another authority", async () => ({ pair: await pairOf(await newAuthority("another")) })],
    ["a certificate that has expired", async () => ({ pair: await pairOf(authority, { notAfter: yesterday }) })],
    ["a guessed secret", async () => ({ pair: await pairOf(authority, { names: ["x"] }), secret: "a".repeat(32) })],
    ["an empty secret", async () => ({ pair: await pairOf(authority, { names: ["x"] }), secret: "" })],
  ])("%s, with or without a link", async (_, shown) => {
    const { url } = await start();
    for (const link of [true, false]) {
      const { transport } = await processAt(url, { ...(await shown()), link });
      expect(await refusal(ask(transport, { [CALLER_HEADER]: "key:ann" }))).toBe(
        "This RPC is for the petstore's own services.",
      );
    }
    expect(seen).toEqual([]);
  });

  test("whoever wants a link without either", async () => {
    const { url } = await start();
    const stranger = createGrpcTransport({ baseUrl: url, nodeOptions: { ca: authority.cert } });
    const link = createClient(LinkService, stranger).link((async function* () {})());
    expect(await refusal(link[Symbol.asyncIterator]().next())).toContain("own processes");
  });
});

test("the secret is enough where both are asked for, so that one can take the place of the other", async () => {
  const secret = "a secret of at least 32 characters";
  const { url } = await start(secret);
  const stranger = await pairOf(authority, { names: ["x"] });
  expect((await ask((await processAt(url, { pair: stranger, secret })).transport)).state).toBe(CategoryState.ACTIVE);
  expect((await ask((await processAt(url)).transport)).state).toBe(CategoryState.ACTIVE);
});

test("the certificate at each address of a host name has to be for the name, and one for the address is not enough", async () => {
  const lookup = async () => ["127.0.0.1"];
  const warned: object[] = [];
  const log = { info: () => {}, warn: (entry: object) => void warned.push(entry) };
  const called = async (pair: Pair) => {
    const { port } = new URL((await start(undefined, pair)).url);
    const { transport } = await processAt(`https://category.shop.test:${port}`, { lookup, log });
    await expect.poll(() => transport.replicas()[0]?.address).toBe("127.0.0.1");
    return ask(transport);
  };
  const named = await pairOf(authority, { names: ["category.shop.test", PEER_NAME] });
  expect((await called(named)).state).toBe(CategoryState.ACTIVE);
  seen.splice(0);
  // The other one is for localhost and 127.0.0.1.
  expect(await refusal(called(own))).toMatch(/can't be reached now/);
  expect(seen).toEqual([]);
  expect(warned).toEqual([expect.objectContaining({ address: "127.0.0.1", problem: expect.any(String) })]);
});

test("a process calls nobody whose certificate is from another authority, or for another host", async () => {
  const { url } = await start();
  const warned: object[] = [];
  const log = { info: () => {}, warn: (entry: object) => void warned.push(entry) };
  const { transport } = await processAt(url, { trusts: (await newAuthority("another")).cert, log });
  const replica = transport.replicas()[0];
  expect(await refusal(ask(replica?.transport as Transport))).toMatch(/no connection to .*(certificate|issuer)/);
  const elsewhere = await start(undefined, await pairOf(authority, { names: ["elsewhere", PEER_NAME] }));
  await refusal(ask(replica?.transport as Transport));
  const [other] = (await processAt(elsewhere.url, { log })).transport.replicas();
  expect(await refusal(ask(other?.transport as Transport))).toMatch(/no connection to .*does not match/);
  expect(seen).toEqual([]);
  // Callers are not told, so the operator is, and not for every call.
  expect(warned).toEqual([url, elsewhere.url].map((url) => ({ url, problem: expect.any(String) })));
});
