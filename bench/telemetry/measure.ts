/** Measures what metrics and traces cost a request: one petstore with different settings, in turns. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Results, Settings } from "../compare/results.ts";
import { measureRounds } from "../compare/rounds.ts";
import { fill, start } from "../compare/running.ts";
import { openSurroundings } from "../compare/surroundings.ts";
import { workloads } from "../load/workloads.ts";
import { onMongodb, petstore } from "../peers/petstore/peer.ts";
import type { Environment } from "../programs.ts";
import type { Progress } from "../progress.ts";

/** Nothing is recorded. The others are compared with it. */
export const OFF = "off";

/** By name: the title, the settings, and the most that it may cost, as a ratio to nothing. */
export const variants: Readonly<Record<string, { title: string; goal?: number; environment?: Environment }>> = {
  [OFF]: { title: "nothing recorded", environment: { ADMIN_PORT: "off" } },
  metrics: { title: "metrics", goal: 1.01 },
  "traces-1": { title: "metrics, and traces of 1 % of the requests", goal: 1.05, environment: sampled("0.01") },
  "traces-100": { title: "metrics, and traces of all requests", goal: 1.35, environment: sampled("1") },
};

function sampled(share: string): Environment {
  return { OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: share };
}

const CELLS = [
  { name: "get", connections: 16 },
  { name: "get", connections: 50 },
  { name: "mixed", connections: 50 },
];

export type TelemetryResults = Pick<Results, "at" | "machine" | "settings" | "starts" | "samples">;

export async function measureTelemetry(settings: Settings, progress: Progress): Promise<TelemetryResults> {
  await using stack = new AsyncDisposableStack();
  const surroundings = await openSurroundings(stack);
  const receiver = await openReceiver(stack);
  const subjects = [];
  for (const [name, { title, environment = {} }] of Object.entries(variants)) {
    const place = () => surroundings.place(name);
    progress.say(`filling the petstore with ${title}`);
    await fill("petstore", await place(), settings.pets);
    const traced: Environment = "OTEL_TRACES_SAMPLER" in environment ? { OTEL_EXPORTER_OTLP_ENDPOINT: receiver } : {};
    const peer = petstore(
      { name, title, data: "petstore" },
      (at) => ({ ...onMongodb(at), SINGLE_PROCESS: "1", MALLOC_ARENA_MAX: "1", ...environment, ...traced }),
      1,
    );
    subjects.push({ name, pets: settings.pets, start: async () => start(peer, await place()) });
  }
  const cells = CELLS.flatMap(({ name, connections }) =>
    workloads.filter((workload) => workload.name === name).map((workload) => ({ workload, connections })),
  );
  const measured = await measureRounds(subjects, { ...settings, cells }, surroundings, progress);
  return { at: new Date().toISOString(), machine: surroundings.machine, settings, ...measured };
}

/** Takes spans and forgets them, in this process, whose time counts for no petstore. Resolves to its address. */
async function openReceiver(stack: AsyncDisposableStack): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(200, { "content-type": "application/x-protobuf" }).end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stack.defer(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
