/** What metrics and traces cost, as a table: the processor time of a request beside that without them. */
import { type Cell, cellsOf, measures, ratio, samplesOf, spread } from "../compare/results.ts";
import { conditions, count } from "../report/conditions.ts";
import { connectionsOf } from "../report/goals.ts";
import { OFF, type TelemetryResults, variants } from "./measure.ts";

export function telemetryReport(results: TelemetryResults): string {
  const { at, machine, settings, samples } = results;
  const lines = [
    `${at.slice(0, 10)}: ${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, MongoDB ${machine.mongod}, ` +
      `${machine.generator}; ${settings.rounds} rounds, ${settings.seconds} s each. CPU of the petstore in one process for one ` +
      "request, in µs.",
    "",
    ...conditions(samples),
  ];
  for (const cell of cellsOf(results)) {
    lines.push(`### ${cell.workload}, ${connectionsOf(cell)}`, "");
    lines.push("| | µs | times (lowest to highest) | goal | |", "|---|--:|--:|--:|---|");
    lines.push(...Object.keys(variants).map((name) => row(results, name, cell)), "");
  }
  return lines.join("\n");
}

function row(results: TelemetryResults, name: string, cell: Cell): string {
  const { title, goal } = variants[name] ?? { title: name };
  const cost = count(spread(samplesOf(results, name, cell).map(measures.cpu)).median);
  const times = name === OFF ? undefined : ratio(results, { ...cell, of: name, to: OFF, measure: "cpu" });
  if (!times || goal === undefined) return `| ${title} | ${cost} | | | |`;
  const { median, min, max } = times;
  const told = `${median.toFixed(2)}x (${min.toFixed(2)} to ${max.toFixed(2)})`;
  return `| ${title} | ${cost} | ${told} | ${goal}x | ${median <= goal ? "reached" : "**not reached**"} |`;
}
