/** Each call is told once at its end, with all its attempts. */
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { beforeEach, expect, test } from "vitest";
import { errors } from "../../../processes/errors.ts";
import type { CallEnded } from "../call.ts";
import { TickerService, type Watch } from "../fixtures/ticker.ts";
import { pipeline } from "./pipeline.ts";

const told: string[] = [];
beforeEach(() => {
  told.length = 0;
});
let now = 0;
const callEnded: CallEnded = (method, ms, failure) => {
  told.push(`${method.name} ${failure ? Code[failure.code] : "ok"} after ${ms}`);
};
const deps = {
  errors,
  callEnded,
  clock: () => now,
  random: () => 0.5,
  sleep: async (ms: number) => {
    now += ms;
  },
};
let failures: unknown[] = [];
const wait = () => {
  const failure = failures.shift();
  if (failure) throw failure;
  return {};
};
const client = (watch: Watch) =>
  createClient(
    TickerService,
    pipeline(
      createRouterTransport(({ service }) => void service(TickerService, { wait, watch: watch as never })),
      deps,
    ),
  );
const twoTicks: Watch = async function* () {
  yield { text: "1" };
  yield { text: "2" };
};

test("a call, and one that is repeated", async () => {
  const lost = new ConnectError("socket hang up", Code.Aborted);
  failures = [];
  const { wait } = client(twoTicks);
  await wait({});
  failures = [lost];
  await wait({});
  failures = [lost, lost, lost];
  await expect(wait({})).rejects.toThrow();
  expect(told).toEqual(["Wait ok after 0", "Wait ok after 25", "Wait Unavailable after 125"]);
});

test("a stream, until its last message was read, its reader leaves, or it fails", async () => {
  const leaving = new AbortController();
  const { watch } = client(twoTicks);
  for await (const _ of watch({})) {
    expect(told).toEqual([]);
    now += 10;
  }
  expect(told).toEqual(["Watch ok after 20"]);
  const left = Array.fromAsync(watch({}, { signal: leaving.signal }), () => leaving.abort());
  await expect(left).rejects.toThrow();
  expect(told.slice(1)).toEqual(["Watch Canceled after 0"]);
  const failing = client(async function* () {
    yield { text: "1" };
    throw new ConnectError("gone", Code.NotFound);
  });
  await expect(Array.fromAsync(failing.watch({}))).rejects.toThrow();
  expect(told.slice(2)).toEqual(["Watch NotFound after 0"]);
});
