/** `npm run bench -- growth`, `npm run bench -- growth --stores mongodb --many 100000`. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { command, known, listed, wholeNumber } from "../options.ts";
import { createProgress } from "../progress.ts";
import { writeResults } from "../report/write.ts";
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
  stores: { type: "string", default: storeNames.join(",") },
  few: { type: "string", default: "10000" },
  many: { type: "string", default: "1000000" },
  rounds: { type: "string", default: "5" },
  seconds: { type: "string", default: "4" },
  seed: { type: "string", default: "1" },
  out: { type: "string", default: join(import.meta.dirname, "../results") },
  help: { type: "boolean", default: false },
} as const;

await command(async () => {
  const { values } = parseArgs({ args: process.argv.slice(3), options });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
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
  writeResults(values.out, {
    "growth.json": `${JSON.stringify(results, undefined, 1)}\n`,
    "growth.md": growthReport(results),
  });
  process.stdout.write(growthReport(results));
});
