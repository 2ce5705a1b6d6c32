import { describe, expect, test } from "vitest";
import { type Results, ratio, type Sample, spread } from "../compare/results.ts";
import { chart, chartedCells } from "./chart.ts";
import { verdicts } from "./goals.ts";
import { report } from "./report.ts";

const sample = (round: number, peer: string, connections: number, requests: number, cpu: number): Sample => ({
  ...{ round, peer, workload: "get", connections },
  answered: { requests, seconds: 2, p50: 4, p99: 9, refused: 0, broken: 0 },
  cost: { servers: cpu * requests, mongod: 10 * requests, generator: 5 * requests, othersShare: 0.25 },
});
const start = (peer: string, readyMs: number, mib: number) => ({
  round: 1,
  peer,
  readyMs,
  restingBytes: mib * 2 ** 20,
});
const results: Results = {
  at: "2026-01-02T03:04:05.000Z",
  machine: { cpu: "a", cores: 2, memoryGib: 4, kernel: "6", node: "v26", mongod: "6", generator: "wrk" },
  settings: { pets: 10_000, rounds: 3, seconds: 2, seed: 1 },
  peers: [
    { name: "monolith", title: "one <process>" },
    { name: "petstore", title: "five" },
  ],
  leftOut: ["go: there is no go here"],
  starts: [start("monolith", 500, 100), start("petstore", 1500, 451)],
  // The machine was half as fast in the second round.
  samples: [
    ...[
      sample(1, "monolith", 50, 2000, 500),
      sample(2, "monolith", 50, 1000, 500),
      sample(3, "monolith", 50, 2000, 500),
    ],
    ...[
      sample(1, "petstore", 50, 8200, 100),
      sample(2, "petstore", 50, 4000, 100),
      sample(3, "petstore", 50, 7800, 200),
    ],
    ...[sample(1, "monolith", 1, 100, 500), sample(1, "petstore", 1, 100, 800)],
  ],
};

describe("numbers of several rounds", () => {
  test("are told by their middle and their ends", () => {
    expect(spread([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3 });
    expect(spread([4, 1, 2, 3])).toEqual({ median: 2.5, min: 1, max: 4 });
  });
  test("are compared round by round", () => {
    const cell = { workload: "get", connections: 50, of: "petstore", to: "monolith" };
    expect(ratio(results, { ...cell, measure: "rate" })).toEqual({ median: 4, min: 3.9, max: 4.1 });
    expect(ratio(results, { ...cell, measure: "cpu" })).toEqual({ median: 0.2, min: 0.2, max: 0.4 });
    expect(ratio(results, { ...cell, to: "go", measure: "rate" })).toBeUndefined();
  });
});

describe("goals", () => {
  const all = verdicts(results, "petstore");
  const of = (title: string) => all.find((verdict) => verdict.title === title);
  test("are reached at the limit, and not beyond it", () => {
    expect(of("get, 50 connections: rate")).toMatchObject({ goal: "at least 2.2x", isReached: true });
    expect(of("get, 50 connections: CPU")).toMatchObject({ goal: "at most 0.55x", isReached: true });
    expect(of("get, 1 connection: p50")).toMatchObject({ reached: "1.00x (1.00 to 1.00)", isReached: true });
    expect(of("start to first answer")).toMatchObject({ goal: "at most 1.5 s", isReached: true });
    expect(of("resident memory at rest")).toMatchObject({ reached: "451 MiB (451 to 451)", isReached: false });
  });
  test("are told only of what was measured", () => expect(all).toHaveLength(5));
  test("are others for one process, and none for a peer that is not ours", () => {
    const oneProcess = "petstore-one-process";
    const renamed = results.samples.map((one) => (one.peer === "petstore" ? { ...one, peer: oneProcess } : one));
    const goals = verdicts({ ...results, samples: renamed, starts: [start(oneProcess, 601, 120)] }, oneProcess);
    expect(goals.map(({ goal, isReached }) => [goal, isReached])).toEqual([
      ["at least 3x", true],
      ["at most 0.4x", true],
      ["at most 1.3x", true],
      ["at most 0.6 s", false],
      ["at most 120 MiB", true],
    ]);
    expect(verdicts(results, "monolith")).toEqual([]);
  });
});

describe("the page", () => {
  const page = report(results);
  test("tells what else ran, and who is missing", () => {
    expect(page).toContain("25 % of its processor time (25 to 25 %)");
    expect(page).toContain("Left out: go: there is no go here");
  });
  test("does not hide requests that failed", () => {
    const [first, ...others] = results.samples as [Sample, ...Sample[]];
    const failed = { ...first, answered: { ...first.answered, refused: 2, broken: 1 } };
    expect(page).not.toContain("answered with an error");
    expect(report({ ...results, samples: [failed, ...others] })).toContain(
      "Of 2,000 requests of get at 50 connections to monolith in round 1, 2 were answered with an error and 1 not at all.",
    );
  });
  test("does not count a measurement in which many failed", () => {
    const [first, ...others] = results.samples as [Sample, ...Sample[]];
    const failed = { ...first, answered: { ...first.answered, refused: 21 } };
    const told = report({ ...results, samples: [failed, ...others] });
    expect(told).toContain("21 were answered with an error and 0 not at all: the measurement does not count.");
    expect(told).toContain("| one <process> | 750 (500 to 1,000) |");
  });
  test("does not count a measurement without an answer", () => {
    const [first, ...others] = results.samples as [Sample, ...Sample[]];
    const none = { ...first, answered: { ...first.answered, requests: 0 } };
    expect(report({ ...results, samples: [none, ...others] })).toContain("Of 0 requests");
    expect(report({ ...results, samples: [none, ...others] })).toContain("| one <process> | 750 (500 to 1,000) |");
  });
  test("has a row for each peer, with its ratio", () => {
    expect(page).toContain("| five | 3,900 (2,000 to 4,100) | 4.00x | 4.00 | 9.00 | 100 (100 to 200) | 10 | 5 |");
    expect(page).toContain("| five | 1.50 (1.50 to 1.50) | 451 |");
  });
  test("does not hide that a goal was missed", () =>
    expect(page).toContain("| resident memory at rest | at most 450 MiB | 451 MiB (451 to 451) | **not reached** |"));
});

describe("the chart", () => {
  test("shows the most connections of each workload", () =>
    expect(chartedCells(results)).toEqual([{ workload: "get", connections: 50 }]));
  test("draws bars by their length", () => {
    const widths = [...chart(results).matchAll(/width="([\d.]+)" height="14"/g)].map(([, width]) => Number(width));
    expect(widths).toHaveLength(4);
    const [monolith = 0, petstore = 0, more = 0, less = 0] = widths;
    expect(petstore / monolith).toBeCloseTo(3.9, 1);
    expect(more / less).toBeCloseTo(5, 1);
  });
  test("is well-formed, whatever a peer is called", () => {
    expect(chart(results)).toContain("one &lt;process&gt;");
    expect(chart(results)).not.toContain("<process>");
  });
});
