/** The comparison as a page of Markdown tables. */
import {
  cellsOf,
  type Measure,
  measures,
  type Results,
  ratio,
  type Sample,
  samplesOf,
  spread,
} from "../compare/results.ts";
import { workloads } from "../load/workloads.ts";
import { conditions, count } from "./conditions.ts";
import { BASE, connectionsOf, verdicts } from "./goals.ts";

export function report(results: Results): string {
  return [...about(results), ...goals(results), ...costs(results), ...processes(results)].join("\n").concat("\n");
}

/** The machine, the settings and the conditions of the run. */
function about({ at, machine, settings, samples, leftOut }: Results): string[] {
  const { pets, rounds, seconds, seed } = settings;
  return [
    `${at.slice(0, 10)}: ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGib} GiB, Linux ${machine.kernel}, Node ${machine.node}, ` +
      `MongoDB ${machine.mongod} (a replica set of one), ${machine.generator}. ${count(pets)} pets, ${rounds === 1 ? "1 round" : `${rounds} rounds`}, ` +
      `${seconds} s each, seed ${seed}. Median of the rounds, lowest to highest in brackets.`,
    "",
    ...conditions(samples),
    ...leftOut.map((reason) => `Left out: ${reason}\n`),
  ];
}

function goals(results: Results): string[] {
  return results.peers.flatMap(({ name, title }) => {
    const rows = verdicts(results, name);
    if (rows.length === 0) return [];
    return [
      `### Goals: ${title}, against ${BASE}`,
      "",
      "| what | goal | here | |",
      "|---|---|---|---|",
      ...rows.map(
        ({ title, goal, reached, isReached }) =>
          `| ${title} | ${goal} | ${reached} | ${isReached ? "reached" : "**not reached**"} |`,
      ),
      "",
    ];
  });
}

function costs(results: Results): string[] {
  return cellsOf(results).flatMap((cell) => {
    const title = workloads.find(({ name }) => name === cell.workload)?.title ?? "";
    const rows = results.peers.flatMap(({ name, title: peer }) => {
      const samples = samplesOf(results, name, cell);
      return samples.length === 0 ? [] : [costRow(peer, samples, rateRatio(results, name, cell))];
    });
    return [
      `### ${cell.workload}, ${connectionsOf(cell)}: ${title}`,
      "",
      `| | requests/s | to ${BASE} | p50, ms | p99, ms | CPU µs a request: servers | mongod | generator |`,
      "|---|--:|--:|--:|--:|--:|--:|--:|",
      ...rows,
      "",
    ];
  });
}

function rateRatio(results: Results, of: string, cell: { workload: string; connections: number }): string {
  const value = ratio(results, { ...cell, of, to: BASE, measure: "rate" });
  return value ? `${value.median.toFixed(2)}x` : "";
}

function costRow(title: string, samples: readonly Sample[], toBase: string): string {
  const of = (measure: Measure) => spread(samples.map(measures[measure]));
  const rate = of("rate");
  const cpu = of("cpu");
  const cells = [
    `${count(rate.median)} (${count(rate.min)} to ${count(rate.max)})`,
    toBase,
    of("p50").median.toFixed(2),
    of("p99").median.toFixed(2),
    `${count(cpu.median)} (${count(cpu.min)} to ${count(cpu.max)})`,
    count(of("mongodCpu").median),
    count(of("generatorCpu").median),
  ];
  return `| ${title} | ${cells.join(" | ")} |`;
}

function processes(results: Results): string[] {
  const rows = results.peers.flatMap(({ name, title }) => {
    const starts = results.starts.filter(({ peer }) => peer === name);
    if (starts.length === 0) return [];
    const ready = spread(starts.map(({ readyMs }) => readyMs / 1000));
    const memory = spread(starts.map(({ restingBytes }) => restingBytes / 2 ** 20));
    const range = `${ready.median.toFixed(2)} (${ready.min.toFixed(2)} to ${ready.max.toFixed(2)})`;
    return [`| ${title} | ${range} | ${count(memory.median)} |`];
  });
  return [
    "### Start and memory",
    "",
    "| | start to first answer, s | resident at rest, MiB, all processes |",
    "|---|--:|--:|",
    ...rows,
  ];
}
