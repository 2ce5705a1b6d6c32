/** Each call that a service is asked for is told once at its end, whatever becomes of it. */
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { beforeEach, expect, test } from "vitest";
import { reasonOf } from "../../../processes/errors.ts";
import type { CallEnded } from "../call.ts";
import { startTicker, type TickerOptions, TickerService, type Watch } from "../fixtures/ticker.ts";

const told: string[] = [];
beforeEach(() => {
  told.length = 0;
});
const callEnded: CallEnded = (method, ms, failure, context) => {
  expect(ms).toBeGreaterThanOrEqual(0);
  const why = failure && (reasonOf(failure)?.reason ?? Code[failure.code]);
  told.push(`${method.name} ${why ?? "ok"}${context ? ` ${context.caller}` : ""}`);
};

const twoTicks: Watch = async function* () {
  yield { text: "1" };
  yield { text: "2" };
};
const start = async (options: TickerOptions = {}, watch = twoTicks) => {
  const { url } = await startTicker(watch, { ...options, callEnded });
  return createClient(TickerService, createGrpcTransport({ baseUrl: url }));
};
async function readAll(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of messages);
}

test("one that succeeds, and one that runs out of time", async () => {
  const { watch, wait } = await start();
  await readAll(watch({}));
  await expect.poll(() => told).toEqual(["Watch ok anonymous"]);
  await expect(wait({}, { timeoutMs: 20 })).rejects.toThrow();
  await expect.poll(() => told.slice(1)).toEqual(["Wait DEADLINE_EXCEEDED anonymous"]);
});

test("a stream whose handler fails, and one whose caller leaves", async () => {
  const failing = await start({}, async function* () {
    yield { text: "1" };
    throw new Error("a bug");
  });
  await expect(readAll(failing.watch({}))).rejects.toThrow();
  await expect.poll(() => told).toEqual(["Watch INTERNAL anonymous"]);
  const { watch } = await start({}, async function* (_, { signal }) {
    yield { text: "1" };
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  });
  const leaving = new AbortController();
  const left = readAll(watch({}, { signal: leaving.signal, onHeader: () => leaving.abort() }));
  await expect(left).rejects.toThrow();
  await expect.poll(() => told.slice(1)).toEqual(["Watch Canceled anonymous"]);
});

test("one of too many streams, which does not begin", async () => {
  const { watch } = await start({ streamLimits: { streams: 0, streamsPerCaller: 1 } });
  await expect(readAll(watch({}))).rejects.toThrow();
  expect(told).toEqual(["Watch TOO_MANY_STREAMS"]);
});

test("one for which there is too much to do, which does not begin", async () => {
  const { wait } = await start({ maxCalls: 0 });
  await expect(wait({})).rejects.toThrow();
  expect(told).toEqual(["Wait OVERLOADED"]);
});

test("one whose caller is not known, which does not begin", async () => {
  const authentication = {
    admit: () => Promise.reject(new ConnectError("who are you?", Code.Unauthenticated)),
  } as unknown as NonNullable<TickerOptions["authentication"]>;
  const { url } = await startTicker(twoTicks, { authentication, callEnded });
  const { wait, watch } = createClient(TickerService, createConnectTransport({ baseUrl: url, httpVersion: "1.1" }));
  await expect(wait({})).rejects.toThrow();
  await expect(readAll(watch({}))).rejects.toThrow();
  expect(told.map((line) => line.split(" ")[0])).toEqual(["Wait", "Watch"]);
  expect(told.join()).not.toContain("ok");
});
