/** Streams from the replicas of a service: where they go, and what they leave to each other and to calls. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createServer as createHttp2, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { realTime } from "@petstore/runtime/clock";
import { expect, onTestFinished, test } from "vitest";
import { errors } from "../../../processes/errors.ts";
import { secret, startTicker, TickerService, type Watch } from "../fixtures/ticker.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/health/v1/health_pb.ts";
import { listen } from "../http/listen.ts";
import { createServiceTransport } from "./pipeline.ts";

const forever = () => new Promise<never>(() => {});
const ticking: Watch = async function* () {
  yield { text: "first" };
  await forever();
};

function open(...urls: string[]) {
  const transport = createServiceTransport({ urls, secret, errors, ...realTime });
  onTestFinished(() => transport.close());
  const client = createClient(TickerService, transport);
  const watch = (text = "") => client.watch({ text })[Symbol.asyncIterator]();
  return { transport, client, watch, health: createClient(Health, transport) };
}

test("little waits for a slow reader", async () => {
  const MESSAGES = 300;
  const text = "x".repeat(10_000);
  let sent = 0;
  const { url } = await startTicker(async function* () {
    for (; sent < MESSAGES; sent++) yield { text };
  });
  const { watch } = open(url);
  let most = 0;
  let taken = 0;
  for (const stream = watch(); !(await stream.next()).done; taken++) {
    for (let turns = 0; turns < 5; turns++) await nextTurn();
    most = Math.max(most, sent - taken);
  }
  expect(taken).toBe(MESSAGES);
  expect(most * text.length).toBeLessThan(400_000);
});

test("those that are open are counted", async () => {
  const { url } = await startTicker(ticking);
  const { watch, client, transport } = open(url);
  const count = () => transport.replicas()[0]?.streams();
  const caller = new AbortController();
  await client.watch({ text: "" }, { signal: caller.signal })[Symbol.asyncIterator]().next();
  await watch().next();
  expect(count()).toBe(2);
  caller.abort();
  await expect.poll(count).toBe(1);
});

test("they go on without the connection for calls, which ends with its link", async () => {
  const begun = Promise.withResolvers<void>();
  const { url } = await startTicker(async function* () {
    yield { text: "first" };
    await begun.promise;
    yield { text: "second" };
  });
  const { watch, transport, health } = open(url);
  const sockets: Socket[] = [];
  const note = (message: unknown) => void sockets.push((message as { socket: Socket }).socket);
  subscribe("net.client.socket", note);
  onTestFinished(() => void unsubscribe("net.client.socket", note));
  const connections = () => sockets.filter(({ destroyed }) => !destroyed).length;
  const stream = watch();
  await stream.next();
  await health.check({});
  expect(connections()).toBe(2);
  transport.replicas()[0]?.endCalls();
  await expect.poll(connections).toBe(1);
  begun.resolve();
  expect((await stream.next()).value?.text).toBe("second");
});

test("as many as one connection can carry keep no calls waiting", async () => {
  const { url } = await startTicker(ticking, { limits: { peerStreams: 3 } });
  const { watch, health } = open(url);
  for (let streams = 0; streams < 3; streams++) await watch().next();
  expect((await health.check({})).status).toBe(Status.SERVING);
});

test.each([
  [99_999_999, 99_999_999],
  [10_000.5, 10_001],
  [200_000_000, Number.POSITIVE_INFINITY], // for gRPC it has a digit too many, and the caller ends the stream itself
])("a limit of %d ms is %d ms at the service", async (timeoutMs, expected) => {
  const { url } = await startTicker(async function* (_, { deadline }) {
    yield { text: `${deadline - realTime.clock()}` };
  });
  const { client } = open(url);
  const [first] = await Array.fromAsync(client.watch({}, { timeoutMs }));
  expect(Number(first?.text)).toBeGreaterThanOrEqual(expected - 5_000);
  expect(Number(first?.text)).toBeLessThanOrEqual(expected + 1_000);
});

test("a replica that is not there gets none", async () => {
  const away = await startTicker(ticking);
  await away.close();
  const { url } = await startTicker(ticking);
  const { watch } = open(away.url, url);
  for (let streams = 0; streams < 4; streams++) expect((await watch().next()).value?.text).toBe("first");
});

test("one whose replica dies ends, and the next goes elsewhere", async () => {
  const [one, other] = [await startTicker(ticking), await startTicker(ticking)];
  const { watch } = open(one.url, other.url);
  const streams = [watch(), watch()];
  for (const stream of streams) await stream.next();
  const [ended, lasting] = streams.map((stream) => stream.next().then(() => "a message", ConnectError.from));
  await one.close(0);
  const end = await Promise.race([ended, lasting]);
  if (!(end instanceof ConnectError)) return expect.fail("It had a message.");
  expect([Code[end.code], errors.reasonOf(end)?.reason]).toEqual(["Unavailable", "UNAVAILABLE"]);
  for (let again = 0; again < 3; again++) expect((await watch().next()).value?.text).toBe("first");
});

test("one that ends without a status, as when its connection ends in between, is UNAVAILABLE", async () => {
  // What a client of HTTP/2 sees when the connection ends behind a GOAWAY, now and then.
  const server = createHttp2();
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc+proto" });
    stream.end(Buffer.alloc(5)); // an empty message, and no trailers
  });
  const port = await listen(server as never, { host: "127.0.0.1", port: 0 });
  onTestFinished(() => void server.close());
  const stream = open(`http://127.0.0.1:${port}`).watch();
  expect((await stream.next()).value?.text).toBe("");
  const end = await stream.next().then(() => expect.fail("It had a message."), ConnectError.from);
  expect([Code[end.code], errors.reasonOf(end)?.reason]).toEqual(["Unavailable", "UNAVAILABLE"]);
});
