/** `npm run bench`, `npm run bench -- get list --connections 50 --rounds 3 --peers monolith,petstore`. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { workloads } from "../load/workloads.ts";
import { command, known, listed, wholeNumber } from "../options.ts";
import { createProgress } from "../progress.ts";
import { chart } from "../report/chart.ts";
import { report } from "../report/report.ts";
import { writeResults } from "../report/write.ts";
import { compare } from "./compare.ts";
import { peerNames } from "./peers.ts";

const RESULTS = join(import.meta.dirname, "../results");

const all = workloads.map(({ name }) => name);
const help = `npm run bench -- [workload ...] [options]     compares the petstore with its peers
npm run bench -- growth | sizes | engines | links | replicas | overload | watch
                                              see bench/README.md

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

await command(async () => {
  const { values, positionals } = parseArgs({ args: process.argv.slice(2), options, allowPositionals: true });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const { connections } = values;
  const results = await compare(
    {
      workloads: known("workload", positionals.length > 0 ? positionals : all, all),
      peers: known("peer", listed(values.peers), peerNames()),
      connections:
        connections === undefined ? undefined : listed(connections).map((text) => wholeNumber("--connections", text)),
      rounds: wholeNumber("--rounds", values.rounds),
      seconds: wholeNumber("--seconds", values.seconds),
      pets: wholeNumber("--pets", values.pets),
      seed: wholeNumber("--seed", values.seed),
    },
    createProgress(),
  );
  const table = report(results);
  writeResults(values.out, {
    "latest.json": `${JSON.stringify(results, undefined, 1)}\n`,
    "latest.md": table,
    "latest.svg": chart(results),
  });
  process.stdout.write(table);
});
