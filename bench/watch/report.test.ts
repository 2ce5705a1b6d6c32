import { expect, test } from "vitest";
import { watchChart } from "./chart.ts";
import { inPieces } from "./connection.ts";
import type { Turn, WatchResults } from "./measure.ts";
import { medianOf, quantiles } from "./quantiles.ts";
import { bytesOf, deliveryMicros, judged, watchReport } from "./report.ts";

const always = (ms: number) => quantiles([ms]);

/** Three rounds: what writes took without watchers and with, until the last of ten had an event, and memory of a watcher. */
function results(alone: readonly number[], watched: readonly number[], last: number, bytes: number): WatchResults {
  const turn = (round: number, watchers: number, ms: number): Turn => ({
    ...{ round, watchers, stored: 100, failed: 0, writes: always(ms), seconds: 5, others: 0.1 },
    // Of 100 writes each 1 ms, and each told to ten watchers.
    cpu: { pet: watchers > 0 ? 0.04 : 0.02, mongod: 0.1 },
    ...(watchers > 0 && {
      events: { each: always(last / 2), last: always(last), delivered: 1000, missing: 0, ended: 0 },
    }),
  });
  const turns = alone.flatMap((ms, i) => [turn(i + 1, 0, ms), turn(i + 1, 10, watched[i] ?? 0)]);
  const before = { rss: 100_000, heap: 50_000 };
  const after = { rss: before.rss + 10 * bytes, heap: before.heap + 5 * bytes };
  return {
    at: "2026-01-01T00:00:00Z",
    machine: { cpu: "x", cores: 2, memoryGib: 1, kernel: "6", node: "v26", mongod: "6" },
    settings: { watchers: 10, perConnection: 20, rate: 20, seconds: 5, rounds: 3 },
    idle: [{ perConnection: 20, before, after }],
    stores: [{ store: "mongodb", turns }],
  };
}

test("a write is not slower where it is no slower than some round without watchers", () => {
  const good = results([5, 6, 9], [8, 8, 12], 200, 40_000);
  const [measured] = good.stores;
  expect(measured && judged(measured)).toMatchObject({ isUnmeasurable: true, allMs: 200 });
  expect(good.idle.map((one) => bytesOf(one, 10))).toEqual([{ rss: 40_000, heap: 20_000 }]);
  expect(watchReport(good)).not.toContain("not reached");
  expect(watchReport(results([5, 6, 9], [10, 10, 8], 300, 60_000)).match(/\*\*not reached\*\*/g)).toHaveLength(3);
});

test("what an event costs is what a write costs more with watchers, shared out among them", () => {
  expect(deliveryMicros(results([5], [5], 100, 1).stores[0]?.turns ?? [])).toBeCloseTo(100);
});

test("what is missing is told", () => {
  const { stores, ...rest } = results([5], [5], 100, 1);
  const turns = stores[0]?.turns.map((turn) =>
    turn.events ? { ...turn, events: { ...turn.events, missing: 3, ended: 1 } } : turn,
  );
  const report = watchReport({ ...rest, stores: [{ store: "embedded", turns: turns ?? [] }] });
  expect(report).toContain("**3 are missing**, and **1 streams ended**");
});

test("a chart has all that was measured, and no number that is none", () => {
  const svg = watchChart(results([5], [6], 0.5, 1));
  expect(svg.match(/<polyline/g)).toHaveLength(4);
  expect(svg).not.toMatch(/NaN|Infinity|undefined/);
});

test("a quantile is what so many percent lie below; of several rounds the median one counts", () => {
  const hundred = quantiles(Array.from({ length: 100 }, (_, i) => 100 - i));
  expect([hundred[0], hundred[50], hundred[99], hundred[100]]).toEqual([1, 51, 100, 100]);
  expect(quantiles([])[50]).toBe(0);
  expect(medianOf([always(1), always(7), always(3)])[50]).toBe(3);
});

test("pieces are whole however their bytes come", () => {
  const bytes = Buffer.from([1, 7, 3, 1, 2, 3, 0, 2, 8, 9]);
  for (let size = 1; size <= bytes.length; size++) {
    const pieces: number[][] = [];
    const take = inPieces(
      1,
      (some, at) => 1 + some.readUInt8(at),
      (piece) => pieces.push([...piece]),
    );
    for (let at = 0; at < bytes.length; at += size) take(bytes.subarray(at, at + size));
    expect(pieces).toEqual([[1, 7], [3, 1, 2, 3], [0], [2, 8, 9]]);
  }
});
