/** `npm run bench -- watch`, `npm run bench -- watch --stores embedded --rate 20`. */
import { measurement } from "../measurement.ts";
import { known, listed, wholeNumber } from "../options.ts";
import { createProgress } from "../progress.ts";
import { watchChart } from "./chart.ts";
import { measureWatch, stores } from "./measure.ts";
import { watchReport } from "./report.ts";

const help = `npm run bench -- watch [options]     what a thousand watchers of pets cost, and how soon they hear

Pets are written at random moments of even stretches of time, in turns with watchers and without.

options
  --watchers 1000     streams of WatchPets; 1000 is the most that a process has by default
  --connection 20     streams of one connection, 20 at most
  --rate 10           writes a second
  --seconds 6         how long each turn lasts
  --rounds 3          each of two turns
  --stores ${stores.join(",")}
  --out DIR           where watch.json, watch.md and watch.svg are written; bench/results by default
  --help
`;

const options = {
  watchers: "1000",
  connection: "20",
  rate: "10",
  seconds: "6",
  rounds: "3",
  stores: stores.join(","),
};

await measurement({ name: "watch", help, options }, async (values) => {
  const results = await measureWatch(
    {
      watchers: wholeNumber("--watchers", values.watchers),
      perConnection: Math.min(20, wholeNumber("--connection", values.connection)),
      rate: wholeNumber("--rate", values.rate),
      seconds: wholeNumber("--seconds", values.seconds),
      rounds: wholeNumber("--rounds", values.rounds),
    },
    known("store", listed(values.stores), stores),
    createProgress(),
  );
  return { json: JSON.stringify(results), report: watchReport(results), chart: watchChart(results) };
});
