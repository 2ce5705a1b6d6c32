/** Runs autocannon once: the load is in a file, the result is one line of JSON. */
import { readFileSync } from "node:fs";
import autocannon from "autocannon";
import type { Answered, Load } from "./generator.ts";

const { url, connections, seconds, requests } = JSON.parse(readFileSync(process.argv[2] as string, "utf8")) as Load;

// Each client has its own part of the list: with the same list, all would request the same pet at the same time.
const part = Math.ceil(requests.length / connections);
let client = 0;
/** Exact milliseconds: autocannon's own histogram has whole ones only. */
const latencies: number[] = [];

const ended = Promise.withResolvers<autocannon.Result>();
const run = autocannon(
  {
    url,
    connections,
    duration: seconds,
    sampleInt: 100,
    setupClient(each) {
      const from = client++ * part;
      each.setRequests(
        requests.slice(from, from + part).map(({ method, path, body }) => ({
          method,
          path,
          ...(body === undefined ? {} : { body, headers: { "content-type": "application/json" } }),
        })),
      );
    },
  },
  (error, result) => (error ? ended.reject(error) : ended.resolve(result)),
);
run.on("response", (_client, _status, _bytes, milliseconds) => void latencies.push(milliseconds));
const { duration, errors, non2xx } = await ended.promise;

const sorted = Float64Array.from(latencies).sort();
const percentile = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
const answered: Answered = {
  requests: sorted.length,
  seconds: duration,
  p50: percentile(0.5),
  p99: percentile(0.99),
  refused: non2xx,
  broken: errors,
};
process.stdout.write(`${JSON.stringify(answered)}\n`);
