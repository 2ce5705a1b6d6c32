/** `npm run bench`, `npm run bench -- get list --connections 50 --rounds 3 --peers monolith,petstore`. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { workloads } from "../load/workloads.ts";
import { createProgress } from "../progress.ts";
import { chart } from "../report/chart.ts";
import { report } from "../report/report.ts";
import { compare } from "./compare.ts";
import { peerNames } from "./peers.ts";

const RESULTS = join(import.meta.dirname, "../results");

const all = workloads.map(({ name }) => name);
const help = `npm run bench -- [workload ...] [options]     compares the petstore with its peers
npm run bench -- sizes | engines              see bench/README.md

workloads
${workloads.map(({ name, title }) => `  ${name.padEnd(14)}${title}`).join("\n")}

options
  --peers a,b         ${peerNames().join(", ")}
  --connections 1,50  instead of those of each workload
  --rounds 5          how often every peer is started and measured
  --seconds 4         how long one measurement takes
  --pets 10000        how many there are
  --seed 1            draws the requests, and the order of the peers in each round
  --out DIR           where latest.json, latest.md and latest.svg are written; bench/results by default
  --help
`;

const list = (text: string) => text.split(",").map((part) => part.trim());

function numberOf(name: string, text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new Error(`--${name} must be a whole number above 0, not ${text}.`);
}

function known(what: string, names: readonly string[], allowed: readonly string[]): readonly string[] {
  const unknown = names.find((name) => !allowed.includes(name));
  if (unknown !== undefined) throw new Error(`There is no ${what} ${unknown}. There are ${allowed.join(", ")}.`);
  return names;
}

const options = {
  peers: { type: "string", default: peerNames().join(",") },
  connections: { type: "string" },
  rounds: { type: "string", default: "5" },
  seconds: { type: "string", default: "4" },
  pets: { type: "string", default: "10000" },
  seed: { type: "string", default: "1" },
  out: { type: "string", default: RESULTS },
  help: { type: "boolean", default: false },
} as const;

async function run(): Promise<void> {
  const { values, positionals } = parseArgs({ args: process.argv.slice(2), options, allowPositionals: true });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const results = await compare(
    {
      workloads: known("workload", positionals.length > 0 ? positionals : all, all),
      peers: known("peer", list(values.peers), peerNames()),
      connections:
        values.connections === undefined
          ? undefined
          : list(values.connections).map((text) => numberOf("connections", text)),
      rounds: numberOf("rounds", values.rounds),
      seconds: numberOf("seconds", values.seconds),
      pets: numberOf("pets", values.pets),
      seed: numberOf("seed", values.seed),
    },
    createProgress(),
  );
  mkdirSync(values.out, { recursive: true });
  const table = report(results);
  writeFileSync(join(values.out, "latest.json"), `${JSON.stringify(results, undefined, 1)}\n`);
  writeFileSync(join(values.out, "latest.md"), table);
  writeFileSync(join(values.out, "latest.svg"), chart(results));
  process.stdout.write(table);
}

try {
  await run();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
