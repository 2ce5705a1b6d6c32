/** `npm run bench`, `npm run bench -- get list --connections 50 --rounds 3 --peers monolith,petstore`. */
import { workloads } from "../load/workloads.ts";
import { measurement } from "../measurement.ts";
import { known, listed, wholeNumber } from "../options.ts";
import { createProgress } from "../progress.ts";
import { chart } from "../report/chart.ts";
import { report } from "../report/report.ts";
import { compare } from "./compare.ts";
import { peerNames } from "./peers.ts";

const all = workloads.map(({ name }) => name);
const help = `npm run bench -- [workload ...] [options]     compares the petstore with its peers
npm run bench -- growth | sizes | engines | links | replicas | cores | overload | watch | telemetry
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
  peers: peerNames().join(","),
  connections: "",
  rounds: "5",
  seconds: "4",
  pets: "10000",
  seed: "1",
};

const args = process.argv.slice(2);
await measurement({ name: "latest", help, options, takesWords: true, args }, async (values, words) => {
  const { connections } = values;
  const results = await compare(
    {
      workloads: known("workload", words.length > 0 ? words : all, all),
      peers: known("peer", listed(values.peers), peerNames()),
      connections:
        connections === "" ? undefined : listed(connections).map((text) => wholeNumber("--connections", text)),
      rounds: wholeNumber("--rounds", values.rounds),
      seconds: wholeNumber("--seconds", values.seconds),
      pets: wholeNumber("--pets", values.pets),
      seed: wholeNumber("--seed", values.seed),
    },
    createProgress(),
  );
  return { json: JSON.stringify(results, undefined, 1), report: report(results), chart: chart(results) };
});
