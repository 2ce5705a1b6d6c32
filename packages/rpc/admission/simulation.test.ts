/** The whole of admission against a simulated server: time is a number, so nothing here depends on speed. */

import { type Random, seededRandom } from "@petstore/runtime/clock";
import { describe, expect, test } from "vitest";
import { OrderService } from "../../../proto/gen/petstore/order/v1/order_service_pb.ts";
import { type Arrivals, phase, type Server, simulate } from "./fixtures/queue.ts";
import { MIN_LIMIT } from "./limit.ts";

const { listOrders, getOrder, createOrder, updateOrder } = OrderService.method;

/** From half to one and a half times the mean. */
const around =
  (ms: number) =>
  (random: Random): number =>
    ms * (0.5 + random());
const exponential =
  (ms: number) =>
  (random: Random): number =>
    -ms * Math.log(1 - random());

interface Simulation {
  readonly title: string;
  readonly server: Server;
  /** Calls a second that it can bear. */
  readonly peak: number;
}
const wide: Simulation = { title: "20 ms a call", server: { workers: 100, workMs: around(20) }, peak: 5_000 };
const simulations: readonly Simulation[] = [
  wide,
  { title: "calls of very different length", server: { workers: 200, workMs: exponential(50) }, peak: 4_000 },
  { title: "few at a time, 8 ms a call", server: { workers: 24, workMs: around(8) }, peak: 3_000 },
];

/** Calm, all that can be borne, more, far more, and calm again: 4 s each. */
const SHARES = [0.5, 1, 3, 10, 0.5];
const [CALM, FLOOD, AFTER] = [0, 3, 4];
const PHASE_MS = 4_000;
/** Until the limit has followed, 2 s at most. */
const SETTLED_MS = 2_000;

const load = (peak: number): Arrivals[] =>
  SHARES.map((share, i) => ({
    method: getOrder,
    perSecond: share * peak,
    fromMs: i * PHASE_MS,
    toMs: (i + 1) * PHASE_MS,
  }));

describe.each(simulations)("$title", ({ server, peak }) => {
  const { calls, limits } = simulate(server, load(peak), seededRandom(1));
  const settled = (i: number) => phase(calls, i * PHASE_MS + SETTLED_MS, (i + 1) * PHASE_MS);
  const [calm, flood, after] = [settled(CALM), settled(FLOOD), settled(AFTER)];

  test("at ten times what it can bear it answers as much, and nobody waits for three times as long", () => {
    expect(flood.perSecond).toBeGreaterThan(0.95 * peak);
    expect(flood.p99).toBeLessThan(3 * calm.p99);
  });

  test("nobody is refused when it is calm, before and 2 s after", () => {
    expect([calm.refused, after.refused]).toEqual([0, 0]);
    expect(after.p99).toBeLessThan(1.2 * calm.p99);
  });

  test("the limit comes near to what the server can do at once", () => {
    const from = FLOOD * PHASE_MS + SETTLED_MS;
    const during = limits.filter(({ at }) => at > from && at < from + PHASE_MS - SETTLED_MS);
    const mean = during.reduce((sum, { limit }) => sum + limit, 0) / during.length;
    expect(mean).toBeGreaterThan(server.workers);
    expect(mean).toBeLessThan(Math.max(1.3 * MIN_LIMIT, 4 * server.workers));
  });

  test("without a limit everybody waits for everybody", () => {
    const { calls } = simulate(server, load(peak).slice(0, FLOOD), seededRandom(1), { admit: false });
    expect(phase(calls, 2 * PHASE_MS + SETTLED_MS, 3 * PHASE_MS).p99).toBeGreaterThan(10 * calm.p99);
  });
});

test("what finishes goes first, then what begins, then reads, and lists are refused first", () => {
  const methods = [updateOrder, createOrder, getOrder, listOrders];
  const arrivals = methods.map((method) => ({ method, perSecond: 0.5 * wide.peak, fromMs: 0, toMs: 6_000 }));
  const { calls } = simulate(wide.server, arrivals, seededRandom(2));
  const shares = methods.map((method) => {
    const { answered, refused } = phase(calls, 3_000, 6_000, method);
    return answered / (answered + refused);
  });
  expect(shares).toEqual(shares.toSorted((a, b) => b - a));
  const [finish = 0, create = 0, read = 1, list = 1] = shares;
  expect(finish).toBe(1);
  expect(create).toBeGreaterThan(0.9);
  expect(read).toBeLessThan(0.1);
  expect(list).toBeLessThan(0.01);
});

test("orders are placed and completed as if nothing were, while lists come at ten times the peak", () => {
  const second = (method: typeof listOrders | typeof createOrder | typeof updateOrder, perSecond: number) => ({
    method,
    perSecond,
    fromMs: 0,
    toMs: 6_000,
  });
  const arrivals = [second(listOrders, 10 * wide.peak), second(createOrder, 100), second(updateOrder, 100)];
  const { calls } = simulate(wide.server, arrivals, seededRandom(3));
  expect(phase(calls, 0, 6_000, createOrder).refused).toBe(0);
  expect(phase(calls, 0, 6_000, updateOrder).refused).toBe(0);
  expect(phase(calls, 2_000, 6_000, listOrders).perSecond).toBeGreaterThan(0.95 * wide.peak - 200);
});

describe("a server that is overloaded from its first moment on", () => {
  const toMs = 40_000;
  const arrivals = [{ method: getOrder, perSecond: 3 * wide.peak, fromMs: 0, toMs }];
  const { calls } = simulate(wide.server, arrivals, seededRandom(4));

  test("answers as much as it can", () => {
    expect(phase(calls, 2_000, toMs).perSecond).toBeGreaterThan(0.95 * wide.peak);
  });

  test("finds out what its calls take alone, for which it pauses now and then", () => {
    const calm = simulate(wide.server, [{ ...arrivals[0], perSecond: 0.5 * wide.peak } as Arrivals], seededRandom(4));
    expect(phase(calls, toMs - 4_000, toMs).p99).toBeLessThan(3 * phase(calm.calls, 0, toMs).p99);
  });
});

test("a server that is slower for a while is let less in, and as much as before afterwards", () => {
  const [fromMs, toMs, endMs] = [5_000, 10_000, 20_000];
  const ill: Server = {
    workers: wide.server.workers,
    workMs: (random, now) => wide.server.workMs(random, now) * (now >= fromMs && now < toMs ? 5 : 1),
  };
  const { calls, limits } = simulate(
    ill,
    [{ method: getOrder, perSecond: 2 * wide.peak, fromMs: 0, toMs: endMs }],
    seededRandom(5),
  );
  const lowest = Math.min(...limits.filter(({ at }) => at > fromMs && at < toMs + 500).map(({ limit }) => limit));
  expect(lowest).toBeLessThan(1.5 * wide.server.workers);
  expect(limits.every(({ limit }) => limit >= 4)).toBe(true);
  expect(phase(calls, toMs + 2_000, endMs).perSecond).toBeGreaterThan(0.95 * wide.peak);
});
