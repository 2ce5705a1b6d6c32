/** `npm run bench -- transcoder`. */
import { measurement } from "../measurement.ts";
import { known, wholeNumber } from "../options.ts";
import { createProgress } from "../progress.ts";
import { calls } from "./calls.ts";
import { measureGateways } from "./measure.ts";
import { gatewaysReport } from "./report.ts";

const names = calls.map(({ name }) => name);

const help = `npm run bench -- transcoder [CALL...] [options]     connect-transcoder beside grpc-gateway, and Envoy where there is one

calls: ${names.join(", ")}; by default all

options
  --rounds 7          how often each gateway is measured with each call
  --seconds 3         how long one measurement takes
  --seed 1            draws the requests, and the order of the gateways in each round
  --out DIR           where gateways.json and gateways.md are written; bench/results by default
  --help

environment
  ENVOY               the path of Envoy, if it is not in the PATH
  BASE                the path of another packages/transcoder/command/main.ts, which is measured, too
`;

await measurement(
  { name: "gateways", help, options: { rounds: "7", seconds: "3", seed: "1" }, takesWords: true },
  async (values, words) => {
    const settings = {
      rounds: wholeNumber("--rounds", values.rounds),
      seconds: wholeNumber("--seconds", values.seconds),
      seed: wholeNumber("--seed", values.seed),
    };
    const results = await measureGateways(settings, known("call", words, names), createProgress());
    return { json: JSON.stringify(results, undefined, 1), report: gatewaysReport(results) };
  },
);
