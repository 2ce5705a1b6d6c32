/** `npm run bench -- overload`, `npm run bench -- overload get --seconds 4`. */
import { type Workload, workloads } from "../load/workloads.ts";
import { measurement } from "../measurement.ts";
import { known, wholeNumber } from "../options.ts";
import { createProgress } from "../progress.ts";
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

const options = { seconds: "6", pets: "10000", seed: "1" };

await measurement({ name: "overload", help, options, takesWords: true }, async (values, words) => {
  const [name] = known("workload", words.length > 0 ? words.slice(0, 1) : ["list-filters"], all);
  const results = await measureOverload(
    workloads.find((one) => one.name === name) as Workload,
    {
      seconds: wholeNumber("--seconds", values.seconds),
      pets: wholeNumber("--pets", values.pets),
      seed: wholeNumber("--seed", values.seed),
    },
    createProgress(),
  );
  return { json: JSON.stringify(results), report: overloadReport(results), chart: overloadChart(results) };
});
