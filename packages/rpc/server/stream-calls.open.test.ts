/** How many streams there may be, of whom, over which protocol; and what they leave to others. */
import { EventEmitter } from "node:events";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, test, vi } from "vitest";
import { reasonOf } from "../../../processes/errors.ts";
import { START_LIMIT } from "../admission/limit.ts";
import type { Authentication } from "../auth/authentication.ts";
import { CALLER_HEADER, SECRET_HEADER } from "../call.ts";
import { secret, startTicker, TickerService, transports, type Watch, watchByHand } from "../fixtures/ticker.ts";
import { Health } from "../gen/health/v1/health_pb.ts";
import { callerAddress } from "../http/hosts.ts";
import { REQUEST_BYTES } from "../http/request-budget.ts";
import { createOpenStreams } from "./stream-calls.ts";

const forever = () => new Promise<never>(() => {});
const ticking: Watch = async function* () {
  yield { text: "first" };
  await forever();
};
const { watch, wait } = TickerService.method;

/** Resolves when a stream has begun, with what ends it; or with why it did not begin. */
async function begin(transport: ReturnType<(typeof transports)[number][1]>, headers: Record<string, string> = {}) {
  const gone = new AbortController();
  const ticks = createClient(TickerService, transport).watch({}, { headers, signal: gone.signal });
  const iterator = ticks[Symbol.asyncIterator]();
  try {
    await iterator.next();
    return () => gone.abort();
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    return `${Code[error.code]} ${reasonOf(error)?.reason}`;
  }
}
const REFUSED = "ResourceExhausted TOO_MANY_STREAMS";

test("of one caller and of all there are no more than so many", () => {
  const { enter } = createOpenStreams({ streams: 3, streamsPerCaller: 2 });
  const leave = enter("a");
  expect(enter("a")).toBeTypeOf("function");
  expect(enter("a")).toContain("2 streams open of this caller");
  expect(enter("b")).toBeTypeOf("function");
  expect(enter("c")).toContain("There are 3 streams open");
  if (typeof leave === "function") for (let again = 0; again < 3; again++) leave();
  expect(enter("a")).toBeTypeOf("function");
  expect(enter("a")).toBeTypeOf("string");
});

test("who is not named is counted among all alone", () => {
  const { enter } = createOpenStreams({ streams: 3, streamsPerCaller: 1 });
  expect([1, 2, 3].map(() => typeof enter(undefined))).toEqual(["function", "function", "function"]);
  expect(enter(undefined)).toBeTypeOf("string");
});

describe.each(transports)("over %s", (_, transport) => {
  test("one stream too many is refused with its reason, until another has ended", async () => {
    const { url } = await startTicker(ticking, { streamLimits: { streams: 10, streamsPerCaller: 2 } });
    const to = transport(url);
    const end = await begin(to);
    expect(await begin(to)).toBeTypeOf("function");
    expect(await begin(to)).toBe(REFUSED);
    if (typeof end === "function") end();
    await vi.waitUntil(async () => typeof (await begin(to)) === "function", { timeout: 30_000 });
  });
});

test.each(transports)(
  "behind a proxy that is trusted, its callers are counted one by one, over %s",
  async (_, transport) => {
    const addressOf = callerAddress([{ address: "127.0.0.1", bits: 32 }]);
    const { url } = await startTicker(ticking, { addressOf, streamLimits: { streams: 10, streamsPerCaller: 1 } });
    const to = transport(url);
    const through = (caller: string) => begin(to, { "x-forwarded-for": caller });
    expect(await through("192.0.2.1")).toBeTypeOf("function");
    expect(await through("192.0.2.1")).toBe(REFUSED);
    expect(await through("192.0.2.2")).toBeTypeOf("function");
  },
);

test("the system's own processes have counted for their callers, and are bounded all together", async () => {
  const { url } = await startTicker(ticking, { streamLimits: { streams: 4, streamsPerCaller: 1 } });
  const [, transport] = transports[0] as (typeof transports)[number];
  const to = transport(url);
  const own = { [SECRET_HEADER]: secret, [CALLER_HEADER]: "somebody" };
  for (let open = 0; open < 4; open++) expect(await begin(to, own)).toBeTypeOf("function");
  expect(await begin(to, own)).toBe(REFUSED);
});

test("of what watches health one network has a quarter, and its streams of other kinds are counted by themselves", async () => {
  const { url, dispatcher } = await startTicker(ticking, { streamLimits: { streams: 8, streamsPerCaller: 1 } });
  const method = Health.method.watch;
  const open = async (network: string, headers = {}) => {
    const response = Object.assign(new EventEmitter(), { writableEnded: false });
    const origin = { network, response, countAsStream() {} };
    const answers = dispatcher
      .stream(method, create(method.input), {
        headers: new Headers(headers),
        timeoutMs: undefined,
        origin,
        whenGone() {},
        responseHeaders: new Headers(),
      })
      [Symbol.asyncIterator]();
    return answers.next().then(
      () => "open",
      (thrown) => reasonOf(ConnectError.from(thrown))?.reason,
    );
  };
  expect([await open("a"), await open("a"), await open("a")]).toEqual(["open", "open", "TOO_MANY_STREAMS"]);
  expect(await open("b")).toBe("open");
  expect(await open("a", { [SECRET_HEADER]: secret })).toBe("open");
  const [, transport] = transports[0] as (typeof transports)[number];
  expect(await begin(transport(url))).toBeTypeOf("function");
});

test("callers who show credentials are told apart by these", async () => {
  const authentication: Authentication = {
    admit: async ({ apiKey }) => ({ id: `${apiKey}` }),
    recheck: () => () => {},
    recheckAll: async () => {},
  };
  const { url } = await startTicker(ticking, { authentication, streamLimits: { streams: 10, streamsPerCaller: 1 } });
  const [, transport] = transports[0] as (typeof transports)[number];
  const to = transport(url);
  expect(await begin(to, { "x-api-key": "a" })).toBeTypeOf("function");
  expect(await begin(to, { "x-api-key": "b" })).toBeTypeOf("function");
  expect(await begin(to, { "x-api-key": "a" })).toBe(REFUSED);
});

test("a caller with many streams has its part of what is for short calls", async () => {
  const { dispatcher } = await startTicker(ticking);
  const response = Object.assign(new EventEmitter().setMaxListeners(0), { writableEnded: false });
  const origin = { network: "192.0.2.1", response, countAsStream() {} };
  const ask = () => dispatcher.shed(watch, new Headers(), false, origin);
  for (let streams = 0; streams < 2 * START_LIMIT; streams++) ask();
  for (let calls = 0; calls < START_LIMIT; calls++)
    void dispatcher.invoke(wait, create(wait.input), { headers: new Headers(), timeoutMs: undefined });
  expect(ask).not.toThrow();
});

describe.each([
  ["HTTP/1.1", "connect"],
  ["HTTP/2", "connect"],
  ["HTTP/2", "grpc"],
] as const)("over %s, by %s", (protocol, type) => {
  test("streams leave the memory for requests, and the places of connections, to others", async () => {
    const limits = { requestBytes: 4 * REQUEST_BYTES, connections: 3, connectionsPerAddress: 2 };
    const { url } = await startTicker(ticking, { limits });
    for (let streams = 0; streams < 10; streams++) await watchByHand(url, protocol, type);
  });
});
