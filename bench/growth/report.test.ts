import { expect, test } from "vitest";
import type { Sample } from "../compare/results.ts";
import { growthReport } from "./report.ts";

const sample = (peer: string, workload: string, servers: number): Sample => ({
  ...{ round: 1, peer, workload, connections: 16 },
  answered: { requests: 10, seconds: 1, p50: 1, p99: 1, refused: 0, broken: 0 },
  cost: { servers: servers * 10, mongod: 1000, generator: 0, othersShare: 0 },
});

test("what a request costs the servers and MongoDB together is compared, up to the goal", () => {
  const page = growthReport({
    at: "2026-01-02T03:04:05.000Z",
    machine: { cpu: "a", cores: 2, memoryGib: 4, kernel: "6", node: "v26", mongod: "6", generator: "wrk" },
    settings: { sizes: { few: 10_000, many: 1_000_000 }, stores: ["mongodb"], rounds: 1, seconds: 1, seed: 1 },
    operations: [
      { name: "get", title: "one pet" },
      { name: "list", title: "a page" },
    ],
    stores: [
      {
        store: "mongodb",
        starts: [],
        samples: [
          sample("few", "get", 100),
          sample("many", "get", 160),
          sample("few", "list", 100),
          sample("many", "list", 170),
        ],
      },
    ],
  });
  expect(page).toContain("| one pet | 200 | 260 | 1.30x (1.30 to 1.30) | reached |");
  expect(page).toContain("| a page | 200 | 270 | 1.35x (1.35 to 1.35) | **not reached** |");
});
