import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { errors, reasonOf } from "../../../processes/errors.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/health/v1/health_pb.ts";
import { createDispatcher } from "./dispatcher.ts";
import { createHealth, healthService } from "./health.ts";

function served({ maxStreams }: { maxStreams?: number } = {}) {
  const health = createHealth(["a.A", "b.B"]);
  const deps = { ...realTime, log: pino({ level: "silent" }) };
  const bounds = maxStreams === undefined ? {} : { streamLimits: { streams: maxStreams, streamsPerCaller: 1 } };
  const dispatcher = createDispatcher([healthService(health)], { deps, secret: "", errors, ...bounds });
  return { health, client: createClient(Health, createRouterTransport(dispatcher.routes)) };
}

test("nothing serves until it is said", async () => {
  const { health, client } = served();
  expect((await client.check({})).status).toBe(Status.NOT_SERVING);
  health.set(true);
  expect((await client.check({})).status).toBe(Status.SERVING);
});

test("each service is asked by its name; one that is not here is NOT_FOUND", async () => {
  const { health, client } = served();
  health.set(true);
  expect((await client.check({ service: "b.B" })).status).toBe(Status.SERVING);
  await expect(client.check({ service: "c.C" })).rejects.toMatchObject({ code: Code.NotFound });
});

test("all are listed", async () => {
  const { client } = served();
  const { statuses } = await client.list({});
  expect(Object.keys(statuses)).toEqual(["", "a.A", "b.B"]);
  expect(statuses["a.A"]?.status).toBe(Status.NOT_SERVING);
});

test("draining is final", () => {
  const { health } = served();
  health.set(true);
  health.drain();
  health.set(true);
  expect([...health.statuses.values()]).toEqual([Status.NOT_SERVING, Status.NOT_SERVING, Status.NOT_SERVING]);
});

describe("a watch", () => {
  test("tells the status, then each change of it", async () => {
    const { health, client } = served();
    const watch = client.watch({ service: "a.A" })[Symbol.asyncIterator]();
    const next = async () => (await watch.next()).value?.status;
    expect(await next()).toBe(Status.NOT_SERVING);
    health.set(false);
    health.set(true);
    expect(await next()).toBe(Status.SERVING);
    health.drain();
    expect(await next()).toBe(Status.NOT_SERVING);
    await watch.return?.();
  });

  test("of an unknown service says so and goes on", async () => {
    const { client } = served();
    const watch = client.watch({ service: "c.C" })[Symbol.asyncIterator]();
    expect((await watch.next()).value?.status).toBe(Status.SERVICE_UNKNOWN);
    await watch.return?.();
  });

  test("lasts for as long as its client wants", async () => {
    vi.useFakeTimers();
    const limit = vi.spyOn(AbortSignal, "timeout").mockReturnValue(AbortSignal.abort());
    onTestFinished(() => {
      limit.mockRestore();
      vi.useRealTimers();
    });
    const { health, client } = served();
    const watch = client.watch({})[Symbol.asyncIterator]();
    await watch.next();
    const next = watch.next();
    await vi.advanceTimersByTimeAsync(24 * 3_600_000);
    health.set(true);
    expect((await next).value?.status).toBe(Status.SERVING);
    await watch.return?.();
  });

  test("is refused while as many as allowed are served, and possible again when one has ended", async () => {
    const { client } = served({ maxStreams: 8 }); // of which a quarter is for one network
    const watch = (signal?: AbortSignal) => client.watch({}, { signal })[Symbol.asyncIterator]();
    const end = new AbortController();
    const [first, second] = [watch(end.signal), watch()];
    await Promise.all([first.next(), second.next()]);
    const refused = await watch().next().catch(ConnectError.from);
    expect(refused instanceof ConnectError && reasonOf(refused)?.reason).toBe("TOO_MANY_STREAMS");
    expect((await client.check({})).status).toBe(Status.NOT_SERVING);
    const ended = first.next();
    end.abort();
    await expect(ended).rejects.toMatchObject({ code: Code.Canceled });
    await vi.waitFor(async () => expect((await watch().next()).done).toBe(false), { timeout: 10_000 });
  });
});
