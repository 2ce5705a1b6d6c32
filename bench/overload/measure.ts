/** Overloads the petstore, and records the outcome of the requests and the resources of the processes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { tryPriority } from "@petstore/runtime/lifecycle";
import { fill, start } from "../compare/running.ts";
import { openSurroundings, type Surroundings } from "../compare/surroundings.ts";
import { placing, requestsOf, type Workload } from "../load/workloads.ts";
import { cpu, machineCpu, resident } from "../measure/proc.ts";
import { nameOf, peer } from "../peers/petstore/peer.ts";
import type { Progress } from "../progress.ts";
import type { Counted } from "./counts.ts";
import type { GeneratorPlan } from "./generator-child.ts";

/** Orders per second during warm-up: that code has to be compiled, too, before a peak with orders is measured. */
const WARM_UP_ORDERS = 50;

/** The rates of the phases, as shares of the peak. */
const SHARES = [0.5, 1, 3, 10, 0.5] as const;

export interface Settings {
  readonly pets: number;
  readonly seconds: number;
  readonly seed: number;
}

/** What a process used in one phase. */
export interface Taken {
  /** Share of one core, 0 to 1. */
  readonly cpu: number;
  readonly peakBytes: number;
}

export interface OverloadResults extends Counted {
  readonly at: string;
  readonly machine: Surroundings["machine"];
  readonly settings: Settings;
  readonly workload: string;
  /** Answers per second with CALLERS clients, which is enough for the highest rate, beside the same orders. */
  readonly peak: number;
  /** By process. */
  readonly atPeak: Readonly<Record<string, Taken>>;
  readonly shares: readonly number[];
  readonly ordersPerSecond: number;
  /** By phase and process. */
  readonly processes: readonly Readonly<Record<string, Taken>>[];
  /** Share of the machine's time used by other processes, by phase. */
  readonly others: readonly number[];
  readonly unanswered: number;
  readonly connections: number;
}

/** Below the limit of 500 for one address. */
const CONNECTIONS = 450;
const CALLERS = 50;
const ORDERS_SHARE = 0.02;
const SAMPLE_MS = 100;
/** By how much the generator's niceness is lowered. */
const GENERATOR_FIRST = 5;

export async function measureOverload(
  workload: Workload,
  settings: Settings,
  progress: Progress,
): Promise<OverloadResults> {
  await using stack = new AsyncDisposableStack();
  const surroundings = await openSurroundings(stack);
  const { pets, seconds, seed } = settings;
  const place = () => surroundings.place("overload");
  await fill(peer.data, await place(), pets);
  const running = await start(peer, await place());
  stack.defer(() => running.stop());
  const watched = new Map<string, number>([
    ...running.pids.map((pid): [string, number] => [nameOf(pid), pid]),
    ["mongod", surroundings.mongod],
  ]);

  const requests = requestsOf(workload, pets, seed);
  const common = {
    url: running.url,
    requests,
    orders: requestsOf(placing, pets, seed),
    connections: CONNECTIONS,
    seed,
  };
  const closed = (s: number, ordersPerSecond: number) =>
    generate({ ...common, callers: CALLERS, ordersPerSecond, phases: [{ seconds: s, perSecond: 0 }] }, watched);
  progress.say("warming up");
  await closed(2 * seconds, WARM_UP_ORDERS);
  const alone = doneOf(await closed(seconds, 0)) / seconds;
  const ordersPerSecond = Math.max(1, Math.round(ORDERS_SHARE * alone));
  progress.say("measuring the peak");
  const all = await closed(seconds, ordersPerSecond);
  const peak = doneOf(all) / seconds;
  progress.say(`the peak is ${Math.round(peak)} a second`);
  const phases = SHARES.map((share) => ({ seconds, perSecond: share * peak }));
  const { counted, processes, others } = await generate({ ...common, ordersPerSecond, phases }, watched);
  return {
    at: new Date().toISOString(),
    machine: { ...surroundings.machine, generator: "an open loop of its own" },
    settings,
    workload: workload.name,
    peak,
    atPeak: all.processes[0] ?? {},
    shares: SHARES,
    ordersPerSecond,
    processes,
    others,
    ...counted,
  };
}

const doneOf = ({ counted }: { counted: Counted }) => counted.phases[0]?.flood.statuses[200] ?? 0;

async function generate(plan: GeneratorPlan, watched: ReadonlyMap<string, number>) {
  const dir = mkdtempSync(join(tmpdir(), "petstore-overload-"));
  const file = join(dir, "plan.json");
  writeFileSync(file, JSON.stringify(plan));
  const child = spawn(process.execPath, [join(import.meta.dirname, "generator-child.ts"), file], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child, "spawn");
  const pid = child.pid as number;
  // The load must not depend on how busy the servers are.
  tryPriority(pid, getPriority() - GENERATOR_FIRST);
  const all = new Map([...watched, ["generator", pid]]);
  const read = () => ({
    at: performance.now(),
    cpu: new Map([...all].map(([name, one]) => [name, cpu([one])])),
    machine: machineCpu(),
  });
  const phases: { before: ReturnType<typeof read>; peaks: Map<string, number> }[] = [];
  const sample = () => {
    const peaks = phases.at(-1)?.peaks;
    if (peaks) for (const [name, one] of all) peaks.set(name, Math.max(peaks.get(name) ?? 0, resident([one])));
  };
  const sampling = setInterval(sample, SAMPLE_MS);
  let last: ReturnType<typeof read> | undefined;
  let result = "";
  for await (const line of createInterface(child.stdout)) {
    if (line === "phase") {
      phases.push({ before: read(), peaks: new Map() });
      sample();
    } else result = line;
    last = read();
  }
  clearInterval(sampling);
  const ends = [...phases.slice(1).map(({ before }) => before), last];
  const processes = phases.map(({ before, peaks }, i) => {
    const after = ends[i] as ReturnType<typeof read>;
    const micros = (after.at - before.at) * 1000;
    const taken = (name: string): Taken => ({
      cpu: ((after.cpu.get(name) ?? 0) - (before.cpu.get(name) ?? 0)) / micros,
      peakBytes: peaks.get(name) ?? 0,
    });
    return Object.fromEntries([...all.keys()].map((name) => [name, taken(name)]));
  });
  const others = phases.map(({ before }, i) => {
    const after = ends[i] as ReturnType<typeof read>;
    const ours = [...all.keys()].reduce(
      (sum, name) => sum + (after.cpu.get(name) ?? 0) - (before.cpu.get(name) ?? 0),
      0,
    );
    const busy = after.machine.busy - before.machine.busy;
    return Math.max(0, busy - ours) / (after.machine.total - before.machine.total);
  });
  const counted = JSON.parse(result) as Counted & { unanswered: number; connections: number };
  return { counted, processes, others };
}
