/** `npm run bench -- telemetry`. */
import { measurement } from "../measurement.ts";
import { wholeNumber } from "../options.ts";
import { createProgress } from "../progress.ts";
import { measureTelemetry } from "./measure.ts";
import { telemetryReport } from "./report.ts";

const help = `npm run bench -- telemetry [options]     what metrics and traces cost a request

options
  --rounds 5          how often the petstore is started and measured with each setting
  --seconds 4         how long one measurement takes
  --pets 10000        how many there are
  --seed 1            draws the requests, and the order of the settings in each round
  --out DIR           where telemetry.json and telemetry.md are written; bench/results by default
  --help
`;

await measurement(
  { name: "telemetry", help, options: { rounds: "5", seconds: "4", pets: "10000", seed: "1" } },
  async (values) => {
    const settings = {
      rounds: wholeNumber("--rounds", values.rounds),
      seconds: wholeNumber("--seconds", values.seconds),
      pets: wholeNumber("--pets", values.pets),
      seed: wholeNumber("--seed", values.seed),
    };
    const results = await measureTelemetry(settings, createProgress());
    return { json: JSON.stringify(results, undefined, 1), report: telemetryReport(results) };
  },
);
