/**
 * Compares the cost of a call between two processes over a link with that of a plain RPC: processor time of both processes,
 * with the whole client (retries, load balancing) and the whole dispatcher. The two take turns, so that other load on the
 * machine affects them equally.
 *
 * `npm run bench -- links [rounds]`
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createServiceTransport } from "@petstore/rpc/client/pipeline";
import { createDispatcher } from "@petstore/rpc/server/dispatcher";
import { implement } from "@petstore/rpc/server/handlers";
import { createHealth } from "@petstore/rpc/server/health";
import { startRpcServer } from "@petstore/rpc/server/server";
import { realTime } from "@petstore/runtime/clock";
import { pino } from "pino";
import { errors } from "#errors";
import { CategoryInternalService, CategoryState } from "#proto/petstore/internal/v1/category_internal_service_pb.ts";
import { spread } from "../compare/results.ts";
import { wholeNumber } from "../options.ts";
import { count } from "../report/conditions.ts";

const CALLERS = [1, 4, 16, 50];
const WARM_UP_MS = 2000;
const MEASURED_MS = 1000;
const secret = "what both processes know";

/** The server process: answers calls, and reports how much processor time it has used. */
async function serve(): Promise<void> {
  const log = pino({ level: "silent" });
  const implementation = implement(CategoryInternalService, {
    async getCategoryState({ categoryId }) {
      await nextTurn(); // as a read from a store would
      return { state: CategoryState.ACTIVE, op: categoryId };
    },
  });
  const dispatcher = createDispatcher([implementation], { deps: { ...realTime, log }, secret, errors });
  const { url } = await startRpcServer({ host: "127.0.0.1", port: 0, log, dispatcher, health: createHealth([]) });
  process.on("message", () => process.send?.(micros(process.cpuUsage())));
  process.once("disconnect", () => process.exit());
  process.send?.(url);
}

const micros = ({ user, system }: NodeJS.CpuUsage) => user + system;

async function measure(service: ChildProcess, url: string, link: boolean): Promise<Map<number, number>> {
  const transport = createServiceTransport({ urls: [url], secret, errors, link, ...realTime });
  const client = createClient(CategoryInternalService, transport);
  const headers = { "x-request-id": "a-request-of-usual-size", "x-internal-caller": "anonymous" };
  const used = async () => {
    service.send("used");
    const [message] = await once(service, "message");
    return micros(process.cpuUsage()) + Number(message);
  };
  let isOver = false;
  let done = 0;
  const caller = async () => {
    for (; !isOver; done++) await client.getCategoryState({ categoryId: 5n }, { headers, timeoutMs: 5000 });
  };
  const during = async (callers: number, ms: number) => {
    isOver = false;
    const all = Promise.all(Array.from({ length: callers }, caller));
    const [before, beforeDone] = [await used(), done];
    await sleep(ms);
    const each = ((await used()) - before) / (done - beforeDone);
    isOver = true;
    await all;
    return each;
  };
  const costs = new Map<number, number>();
  await during(16, WARM_UP_MS);
  for (const callers of CALLERS) costs.set(callers, await during(callers, MEASURED_MS));
  transport.close();
  return costs;
}

async function main(rounds: number): Promise<void> {
  const found = new Map<string, number[]>();
  for (let round = 1; round <= rounds; round++)
    for (const link of [true, false]) {
      const service = fork(import.meta.filename, ["serve"]);
      const [url] = await once(service, "message");
      for (const [callers, micros] of await measure(service, `${url}`, link)) {
        const key = `${link ? "link " : "plain"} ${String(callers).padStart(2)} callers`;
        found.set(key, [...(found.get(key) ?? []), micros]);
      }
      service.disconnect();
    }
  for (const [key, costs] of found) {
    const { median, min, max } = spread(costs);
    process.stdout.write(`${key}: ${count(median)} µs of processor time a call (${count(min)} to ${count(max)})\n`);
  }
}

if (process.argv[2] === "serve") await serve();
else await main(wholeNumber("The rounds", process.argv[3] ?? "5"));
