/** Runs autocannon once: the load is in a file, the result is one line of JSON. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import autocannon from "autocannon";
import type { Answered, Load } from "./generator.ts";
import { createKnownOrders } from "./known-orders.ts";
import { ORDER_ID, type Request } from "./workloads.ts";

const { url, connections, seconds, requests } = JSON.parse(readFileSync(process.argv[2] as string, "utf8")) as Load;

// Each client has its own part of the list: with the same list, all would request the same pet at the same time.
const part = Math.ceil(requests.length / connections);
let client = 0;
const known = createKnownOrders(randomUUID(), connections);
/** Requests that must be refused, and answers that say so. */
let [refusable, refused] = [0, 0];
/** Sent in place of a request for an order while none is known. */
const simple = requests.find(({ path, key }) => !path.includes(ORDER_ID) && key === undefined);

/** What is filled in while it is sent costs a function for each request, so only such lists have one. */
const isWhole = requests.every(({ path, key, isRefused }) => !path.includes(ORDER_ID) && !key && !isRefused);

function toSend(request: Request): autocannon.Request {
  if (isWhole) return { ...known.fill(request) };
  return {
    setupRequest(defaults) {
      if (request.isRefused) refusable++;
      return { ...defaults, ...(known.fill(request) ?? known.fill(simple as Request)) };
    },
    onResponse(status, body) {
      if (status === 409) refused++;
      known.answered(status, body);
    },
  };
}

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
      each.setRequests(requests.slice(from, from + part).map(toSend));
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
  refused: non2xx - Math.min(refusable, refused),
  broken: errors,
};
process.stdout.write(`${JSON.stringify(answered)}\n`);
