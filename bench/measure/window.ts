/** The cost of a period of time: of each process that takes part, and of everything else on the machine. */
import { cpu, endedChildrenCpu, machineCpu, ownCpu } from "./proc.ts";

/** Processor time in microseconds. */
export interface Cost {
  readonly servers: number;
  readonly mongod: number;
  readonly generator: number;
  /** Share of the machine's time, 0 to 1, used by processes other than these and this one. */
  readonly othersShare: number;
}

/** Measures the cost of `work`, which has to wait until the generator has ended. */
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
