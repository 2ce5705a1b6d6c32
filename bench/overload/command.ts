/** `npm run bench -- overload`, `npm run bench -- overload get --seconds 4`. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Workload, workloads } from "../load/workloads.ts";
import { command, known, wholeNumber } from "../options.ts";
import { createProgress } from "../progress.ts";
import { writeResults } from "../report/write.ts";
import { overloadChart } from "./chart.ts";
import { measureOverload } from "./measure.ts";
import { overloadReport } from "./report.ts";

const all = workloads.map(({ name }) => name);

const help = `npm run bench -- overload [workload] [options]     what becomes of requests beyond what can be borne

The workload (list-filters, or another of ${all.join(", ")}) comes at 0.5, 1, 3 and 10 times its peak and at 0.5
again; beside it orders are placed and completed at an even rate.

options
  --seconds 6         how long each rate lasts
  --pets 10000        pets of the petstore
  --seed 1            draws the requests, and when they come
  --out DIR           where overload.json, overload.md and overload.svg are written; bench/results by default
  --help
`;

const options = {
  seconds: { type: "string", default: "6" },
  pets: { type: "string", default: "10000" },
  seed: { type: "string", default: "1" },
  out: { type: "string", default: join(import.meta.dirname, "../results") },
  help: { type: "boolean", default: false },
} as const;

await command(async () => {
  const { values, positionals } = parseArgs({ args: process.argv.slice(3), options, allowPositionals: true });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const [name] = known("workload", positionals.length > 0 ? positionals.slice(0, 1) : ["list-filters"], all);
  const results = await measureOverload(
    workloads.find((one) => one.name === name) as Workload,
    {
      seconds: wholeNumber("--seconds", values.seconds),
      pets: wholeNumber("--pets", values.pets),
      seed: wholeNumber("--seed", values.seed),
    },
    createProgress(),
  );
  const report = overloadReport(results);
  writeResults(values.out, {
    "overload.json": `${JSON.stringify(results)}\n`,
    "overload.md": report,
    "overload.svg": overloadChart(results),
  });
  process.stdout.write(report);
});
