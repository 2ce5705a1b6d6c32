/** At both endpoints: a stream lasts no longer than the credential that it was opened with. */
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { callerAddress } from "@petstore/rpc/http/hosts";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";
import { reasonOf } from "#errors";
import { EventService } from "#proto/petstore/event/v1/event_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type EndingCredentials, endings, openEndingCredentials } from "../packages/rpc/fixtures/ending-credentials.ts";
import { authOf } from "./auth.ts";
import { fakeServices } from "./events/fixtures/watches.ts";
import { eventTransport } from "./events/watch-events.ts";
import { startGateway, testLimits } from "./fixtures/gateway.ts";
import { limitFailedCredentials } from "./rates.ts";
import { rpcEndpoint } from "./rpc-endpoint.ts";

const clock = Date.now;

/** A gateway before services that are played by the test. */
async function start({ authentication }: EndingCredentials) {
  const { transports, watched } = fakeServices();
  const transport = transports.get(PetService.typeName);
  if (!transport) throw new Error("no pets");
  const services = [{ desc: PetService, transport }];
  const limits = { ...testLimits, rpcBytes: 1024 };
  const draining = new AbortController();
  const events = eventTransport({ transports, basePath: "", ...realTime, log: pino({ level: "silent" }) });
  const { app, base } = await startGateway(
    PetService,
    {},
    {
      services: [...services, { desc: EventService, transport: events }],
      plugins: [rpcEndpoint({ basePath: "", services, limits, clock, draining: draining.signal })],
      auth: authOf(authentication, limitFailedCredentials(callerAddress([]), { clock })),
      draining: draining.signal,
    },
  );
  onTestFinished(async () => {
    draining.abort();
    await app.close();
  });
  return { base, watched };
}
const bearer = (credential: string, headers = {}) => ({
  headers: { authorization: `Bearer ${credential}`, ...headers },
});

describe.each([
  ["Connect", createConnectTransport],
  ["gRPC-Web", createGrpcWebTransport],
] as const)("over %s", (_, open) => {
  test.each(endings)("$name ends its stream, and that at the service", async (ending) => {
    const credentials = await openEndingCredentials();
    const { base, watched } = await start(credentials);
    const pets = createClient(PetService, open({ baseUrl: base, httpVersion: "1.1" }));
    const stream = pets.watchPets({}, bearer(ending.credential(credentials)))[Symbol.asyncIterator]();
    const first = stream.next();
    const { heartbeat, left } = await watched("pet");
    heartbeat("pet-0");
    expect((await first).value?.resumeToken).toBe("pet-0");
    await ending.end(credentials);
    const error = await stream.next().catch(ConnectError.from);
    if (!(error instanceof ConnectError)) return expect.fail("it went on");
    expect([error.rawMessage, reasonOf(error)?.reason]).toEqual([ending.message, ending.reason]);
    const isDenied = ending.reason === "PERMISSION_DENIED";
    expect(error.code).toBe(isDenied ? Code.PermissionDenied : Code.Unauthenticated);
    expect(error.metadata.get("www-authenticate")).toContain(isDenied ? "insufficient_scope" : "invalid_token");
    await left;
  });
});

describe("over HTTP", () => {
  const SSE = "text/event-stream";
  const NDJSON = "application/x-ndjson";
  /** A stream of these types that has begun. */
  async function begin(credentials: EndingCredentials, credential: string, { types = "pet", accept = SSE } = {}) {
    const gateway = await start(credentials);
    const answering = fetch(`${gateway.base}/events?types=${types}`, bearer(credential, { accept }));
    const watches = await Promise.all(types.split(",").map((name) => gateway.watched(name as "pet")));
    for (const { heartbeat } of watches) heartbeat("0");
    const answer = await answering;
    expect(answer.status).toBe(200);
    return { ...gateway, watches, text: answer.text() };
  }

  test.each(endings)("$name ends its stream, and those at the services", async (ending) => {
    const credentials = await openEndingCredentials();
    const { text, watches } = await begin(credentials, ending.credential(credentials), { types: "category,pet" });
    await ending.end(credentials);
    const { reason: code, message } = ending;
    const record = { code, message, status: code === "UNAUTHENTICATED" ? 401 : 403 };
    expect((await text).split("\n\n").at(-2)).toBe(`event: error\ndata: ${JSON.stringify(record)}`);
    await Promise.all(watches.map(({ left }) => left));
  });

  test("its end is told in lines of JSON as well", async () => {
    const credentials = await openEndingCredentials();
    const { text } = await begin(credentials, credentials.key, { accept: NDJSON });
    await endings[0]?.end(credentials);
    const last = (await text).trimEnd().split("\n").at(-1) ?? "";
    expect(JSON.parse(last)).toMatchObject({
      id: expect.any(String),
      event: "error",
      data: { code: "UNAUTHENTICATED", status: 401 },
    });
  });

  test("who may not watch one of the types any more watches none", async () => {
    const credentials = await openEndingCredentials();
    const { text } = await begin(credentials, credentials.key, { types: "category,order,pet" });
    await endings.find(({ reason }) => reason === "PERMISSION_DENIED")?.end(credentials);
    expect(await text).toContain("This needs the scope pets:read");
  });

  test("who loses what it does not watch goes on", async () => {
    const credentials = await openEndingCredentials();
    const { text, watches, base } = await begin(credentials, credentials.key, { types: "category" });
    await endings.find(({ reason }) => reason === "PERMISSION_DENIED")?.end(credentials);
    expect((await fetch(`${base}/events`, bearer(credentials.key))).status).toBe(403);
    await credentials.authentication.recheckAll();
    watches[0]?.synced("1");
    watches[0]?.end();
    expect(await text).not.toContain("error");
  });

  test("a credential that ends before its stream has begun is refused", async () => {
    const credentials = await openEndingCredentials();
    const { base, watched } = await start(credentials);
    const answering = fetch(`${base}/events?types=pet`, bearer(credentials.key));
    const { left } = await watched("pet");
    await endings[0]?.end(credentials);
    const answer = await answering;
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toContain("invalid_token");
    await left;
  });
});

test("streams that end so are no failures of their address", async () => {
  const credentials = await openEndingCredentials();
  const { base, watched } = await start(credentials);
  const pets = createClient(PetService, createConnectTransport({ baseUrl: base, httpVersion: "1.1" }));
  const streams = Array.from({ length: 20 }, () => pets.watchPets({}, bearer(credentials.key))[Symbol.asyncIterator]());
  const firsts = streams.map((stream) => stream.next());
  for (const _ of streams) (await watched("pet")).heartbeat("0");
  await Promise.all(firsts);
  await endings[0]?.end(credentials);
  for (const stream of streams) await expect(stream.next()).rejects.toThrow("revoked");
  expect((await fetch(`${base}/pets`, bearer(credentials.key))).status).toBe(401);
});
