import { expect, test } from "vitest";
import { overloadChart } from "./chart.ts";
import { createCounts, percentile } from "./counts.ts";
import type { OverloadResults } from "./measure.ts";
import { judged, overloadReport, recovery } from "./report.ts";

/** One second at each rate, at a peak of 100: `answered` and `ms` by rate. */
function results(answered: readonly number[], ms: readonly number[]): OverloadResults {
  const shares = [0.5, 1, 3, 10, 0.5];
  const counts = createCounts(shares.length);
  for (const [phase, share] of shares.entries())
    for (let i = 0; i < share * 100; i++) {
      counts.sent("flood", phase);
      const isDone = i < (answered[phase] ?? 0);
      const answer = isDone ? { status: 200, ms: ms[phase] ?? 0 } : { status: 503, ms: 1 };
      counts.answered("flood", phase, { ...answer, dueAt: 1000 * (phase + i / (share * 100)) });
    }
  const taken = { pet: { cpu: 0.5, peakBytes: 100 * 2 ** 20 } };
  return {
    at: "2026-01-01T00:00:00Z",
    machine: { cpu: "x", cores: 2, memoryGib: 1, kernel: "6", node: "v26", mongod: "6", generator: "g" },
    settings: { pets: 10, seconds: 1, seed: 1 },
    ...{ workload: "list-filters", peak: 100, shares, ordersPerSecond: 2, unanswered: 0, connections: 9 },
    atPeak: { pet: { cpu: 0.6, peakBytes: 100 * 2 ** 20 }, generator: { cpu: 0.1, peakBytes: 0 } },
    processes: shares.map(() => taken),
    others: shares.map(() => 0.1),
    ...counts.result(),
  };
}

test("goals are judged at the highest rate, beside the first", () => {
  const good = results([50, 98, 97, 96, 50], [10, 20, 25, 30, 10]);
  // All but the generator took 0.6 of a core at the peak and 0.5 with 904 refusals.
  const byTime = expect.closeTo(1.152);
  const refusalMicros = expect.closeTo((1e6 * (0.5 - 0.57)) / 904);
  expect(judged(good)).toEqual({ goodput: 0.96, byTime, refusalMicros, delay: 3, recoveryMs: 0 });
  expect(overloadReport(good)).not.toContain("not reached");
  expect(overloadReport(good)).not.toContain("To reach the first");
  const bad = results([50, 90, 90, 80, 40], [10, 50, 100, 200, 100]);
  expect(overloadReport(bad).match(/\*\*not reached\*\*/g)).toHaveLength(3);
  expect(overloadReport(bad)).toMatch(/To reach the first, a refusal may cost all processes together (nothing|\d+ µs)/);
});

test("all is as before from the last slice on in which it is not", () => {
  const slice = (refused: number, p99: number) => ({ done: 1, refused, p99 });
  expect(recovery([slice(5, 10), slice(0, 100), slice(0, 30), slice(0, 10)], 10)).toBe(500);
  expect(recovery([slice(0, 10)], 10)).toBe(0);
  expect(recovery([slice(0, 10), slice(1, 10)], 10)).toBeUndefined();
});

test("a chart has all that was measured, and no number that is none", () => {
  const svg = overloadChart(results([50, 98, 97, 96, 50], [10, 20, 25, 30, 10]));
  expect(svg.match(/<polyline/g)).toHaveLength(3);
  expect(svg).not.toMatch(/NaN|Infinity|undefined/);
});

test("a delay counts for when the request was due, an answer by its status", () => {
  const counts = createCounts(1);
  for (const [status, ms] of [
    [200, 5],
    [503, 1],
    [0, 9],
  ] as const) {
    counts.sent("flood", 0);
    counts.answered("flood", 0, { status, ms, dueAt: 300 });
  }
  const { phases, slices } = counts.result();
  expect(phases[0]?.flood).toMatchObject({ sent: 3, statuses: { 0: 1, 200: 1, 503: 1 }, p99: 5 });
  expect(slices).toEqual([
    { done: 0, refused: 0, p99: 0 },
    { done: 1, refused: 2, p99: 5 },
  ]);
  expect(percentile([], 0.5)).toBe(0);
});
