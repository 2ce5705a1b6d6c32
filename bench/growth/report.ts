/** The growth measurement as a table: the cost of a request at both sizes, and the ratio. */
import { type Cell, measures, ratio, type Sample, samplesOf, spread } from "../compare/results.ts";
import { conditions, count } from "../report/conditions.ts";
import type { GrowthResults } from "./growth.ts";

/** The maximum ratio of costs with a hundred times as much data. */
const GOAL = 1.3;

export function growthReport({ at, machine, settings, operations, stores }: GrowthResults): string {
  const { few, many } = settings.sizes;
  const lines = [
    `${at.slice(0, 10)}: ${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, MongoDB ${machine.mongod}, ` +
      `${machine.generator}; ${settings.rounds} rounds, ${settings.seconds} s each. CPU of all servers and of MongoDB for one ` +
      `request, in µs; the goal is at most ${GOAL}x.`,
    "",
    ...conditions(stores.flatMap(({ samples }) => samples)),
  ];
  for (const { store, samples } of stores) {
    lines.push(`### ${store}`, "");
    lines.push(`| | ${count(few)} pets | ${count(many)} pets | times (lowest to highest) | |`, "|---|--:|--:|--:|---|");
    for (const { name, title } of operations) lines.push(row({ samples }, name, title));
    lines.push("");
  }
  return lines.join("\n");
}

function row(results: { readonly samples: readonly Sample[] }, workload: string, title: string): string {
  const connections = results.samples.find((sample) => sample.workload === workload)?.connections ?? 0;
  const cell: Cell = { workload, connections };
  const cost = (size: string) => count(spread(samplesOf(results, size, cell).map(measures.wholeCpu)).median);
  const times = ratio(results, { ...cell, of: "many", to: "few", measure: "wholeCpu" });
  if (!times) return `| ${title} | | | not measured | |`;
  const { median, min, max } = times;
  const told = `${median.toFixed(2)}x (${min.toFixed(2)} to ${max.toFixed(2)})`;
  return `| ${title} | ${cost("few")} | ${cost("many")} | ${told} | ${median <= GOAL ? "reached" : "**not reached**"} |`;
}
