/** `npm run bench -- growth`, `npm run bench -- growth --stores mongodb --many 100000`. */
import { measurement } from "../measurement.ts";
import { known, listed, wholeNumber } from "../options.ts";
import { createProgress } from "../progress.ts";
import { measureGrowth, storeNames } from "./growth.ts";
import { growthReport } from "./report.ts";

const help = `npm run bench -- growth [options]     what a request costs when there is a hundred times as much data

options
  --stores a,b        ${storeNames.join(", ")}
  --few 10000         pets of the small petstore
  --many 1000000      pets of the large one
  --rounds 5          how often both are started and measured
  --seconds 4         how long one measurement takes
  --seed 1            draws the requests, and the order of the two in each round
  --out DIR           where growth.json and growth.md are written; bench/results by default
  --help
`;

const options = {
  stores: storeNames.join(","),
  few: "10000",
  many: "1000000",
  rounds: "5",
  seconds: "4",
  seed: "1",
};

await measurement({ name: "growth", help, options }, async (values) => {
  const results = await measureGrowth(
    {
      stores: known("store", listed(values.stores), storeNames),
      sizes: { few: wholeNumber("--few", values.few), many: wholeNumber("--many", values.many) },
      rounds: wholeNumber("--rounds", values.rounds),
      seconds: wholeNumber("--seconds", values.seconds),
      seed: wholeNumber("--seed", values.seed),
    },
    createProgress(),
  );
  return { json: JSON.stringify(results, undefined, 1), report: growthReport(results) };
});
