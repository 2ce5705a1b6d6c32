import { expect, test } from "vitest";
import type { Sample } from "./measure.ts";
import { gatewaysReport, ratios } from "./report.ts";

const sample = (round: number, gateway: string, cpu: number): Sample => ({
  ...{ round, gateway, call: "get", cpu, resident: 50 * 2 ** 20, busy: 0.5 },
  answered: { requests: 1000, seconds: 2, p50: 1, p99: 2, refused: 0, broken: 0 },
});
const samples = [
  sample(1, "grpc-gateway", 80),
  sample(1, "connect-transcoder", 100),
  sample(2, "connect-transcoder", 200),
  sample(2, "grpc-gateway", 100),
];

test("a gateway that needs twice the time of grpc-gateway in one round has a ratio of a half", () => {
  expect(ratios(samples, "get", "connect-transcoder")).toEqual([0.8, 0.5]);
});

test("the report has the median and the range, and the most memory", () => {
  const gateways = ["grpc-gateway", "connect-transcoder"].map((name) => ({ name, title: name, restingBytes: 2 ** 20 }));
  const machine = { cpu: "a processor", cores: 2, node: "v1", generator: "wrk" };
  const settings = { rounds: 2, seconds: 2, seed: 1 };
  const report = gatewaysReport({ at: "2026-11-27T00:00:00Z", machine, settings, gateways, samples });
  expect(report).toContain("connect-transcoder | 150 (100 to 200) | 0.65 (0.50 to 0.80) | 500 | 1.0 |");
  expect(report).toContain("| connect-transcoder | 1 | 50 |");
});
