import { expect, test } from "vitest";
import type { Sample } from "../compare/results.ts";
import { telemetryReport } from "./report.ts";

const sample = (peer: string, servers: number): Sample => ({
  ...{ round: 1, peer, workload: "get", connections: 16 },
  answered: { requests: 10, seconds: 1, p50: 1, p99: 1, refused: 0, broken: 0 },
  cost: { servers: servers * 10, mongod: 0, generator: 0, othersShare: 0 },
});

test("each setting is compared with nothing recorded, up to its goal", () => {
  const page = telemetryReport({
    at: "2026-01-02T03:04:05.000Z",
    machine: { cpu: "a", cores: 2, memoryGib: 4, kernel: "6", node: "v26", mongod: "6", generator: "wrk" },
    settings: { pets: 10, rounds: 1, seconds: 1, seed: 1 },
    starts: [],
    samples: [sample("off", 100), sample("metrics", 101), sample("traces-1", 110), sample("traces-100", 130)],
  });
  expect(page).toContain("### get, 16 connections");
  expect(page).toContain("| nothing recorded | 100 | | | |");
  expect(page).toContain("| metrics | 101 | 1.01x (1.01 to 1.01) | 1.01x | reached |");
  expect(page).toContain(
    "| metrics, and traces of 1 % of the requests | 110 | 1.10x (1.10 to 1.10) | 1.05x | **not reached** |",
  );
});
