/** Petstores on one MongoDB that take turns under load: what a request costs each of their processes. */
import type { ProcessName } from "../processes/names.ts";
import { spread } from "./compare/results.ts";
import { fill, type Started, start } from "./compare/running.ts";
import type { Surroundings } from "./compare/surroundings.ts";
import { requestsOf, type Workload } from "./load/workloads.ts";
import { cpu, machineCpu } from "./measure/proc.ts";
import { nameOf, onMongodb, petstore } from "./peers/petstore/peer.ts";

const PETS = 10_000;

export type Turn = Awaited<ReturnType<typeof turn>>;

/** Starts a petstore of so many processes, filled with pets. The stack ends it. */
export async function running(
  { place }: Surroundings,
  stack: AsyncDisposableStack,
  name: string,
  processes: number,
  replicas = "",
): Promise<Started> {
  const environment = { LOG_LEVEL: "info", ...(replicas && { REPLICAS: replicas }) };
  const about = { name, title: name, data: "petstore" } as const;
  const peer = petstore(about, (at) => ({ ...onMongodb(at), ...environment }), processes);
  const at = await place(name);
  await fill(peer.data, at, PETS);
  const started = await start(peer, at);
  stack.defer(() => started.stop());
  return started;
}

/** Requests per second, and the processor time of one in microseconds. */
export async function turn(
  { generator, mongod }: Surroundings,
  { url, pids }: Started,
  workload: Workload,
  { connections, seconds, seed }: { readonly connections: number; readonly seconds: number; readonly seed: number },
) {
  const requests = requestsOf(workload, PETS, seed);
  const spent = () => new Map([...pids, mongod].map((pid) => [pid, cpu([pid])]));
  const [before, machineBefore] = [spent(), machineCpu()];
  const answered = await generator.run({ url, connections, seconds, requests });
  const [after, machine] = [spent(), machineCpu()];
  const of = (pid: number) => ((after.get(pid) ?? 0) - (before.get(pid) ?? 0)) / answered.requests;
  return {
    requests: answered.requests,
    perSecond: answered.requests / answered.seconds,
    failed: answered.refused + answered.broken,
    /** Of each process of the kind. */
    kind: (name: ProcessName) => pids.filter((pid) => nameOf(pid) === name).map(of),
    mongod: of(mongod),
    busy: (machine.busy - machineBefore.busy) / (machine.total - machineBefore.total),
  };
}

export const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

/** The median and the range of the rounds. */
export function shown(values: readonly number[], digits = 0): string {
  const { median, min, max } = spread(values);
  return `${median.toFixed(digits)} (${min.toFixed(digits)} to ${max.toFixed(digits)})`;
}

export const print = (cells: readonly unknown[]) => process.stdout.write(`| ${cells.join(" | ")} |\n`);
