/** What a stretch of time cost: each process that takes part by itself, and what else the machine did meanwhile. */
import { cpu, endedChildrenCpu, machineCpu, ownCpu } from "./proc.ts";

/** Processor time in microseconds. */
export interface Cost {
  readonly servers: number;
  readonly mongod: number;
  readonly generator: number;
  /** Share of the machine, 0 to 1, that nobody of these used and this process neither. */
  readonly othersShare: number;
}

/** Runs `work`, which waits for the generator to end. */
export async function measured<R>(
  pids: { readonly servers: readonly number[]; readonly mongod: readonly number[] },
  work: () => Promise<R>,
): Promise<{ result: R; cost: Cost }> {
  const read = () => ({
    servers: cpu(pids.servers),
    mongod: cpu(pids.mongod),
    generator: endedChildrenCpu(),
    own: ownCpu(),
    machine: machineCpu(),
  });
  const before = read();
  const result = await work();
  const after = read();
  const spent = (of: "servers" | "mongod" | "generator" | "own") => after[of] - before[of];
  const busy = after.machine.busy - before.machine.busy;
  const total = after.machine.total - before.machine.total;
  const ours = spent("servers") + spent("mongod") + spent("generator") + spent("own");
  const othersShare = Math.max(0, busy - ours) / total;
  const cost = { servers: spent("servers"), mongod: spent("mongod"), generator: spent("generator"), othersShare };
  return { result, cost };
}
