/**
 * Measures several subjects in turns. One runs at a time, and all take part in each round, in an order that changes from round
 * to round: other load on the machine affects them equally.
 */

import { seededRandom } from "@petstore/runtime/clock";
import { requestsOf, type Workload } from "../load/workloads.ts";
import { measured } from "../measure/window.ts";
import type { RunningPeer } from "../peer.ts";
import type { Progress } from "../progress.ts";
import { shuffled } from "../seed/random.ts";
import type { Sample, Start } from "./results.ts";
import { restingMemory, type Started } from "./running.ts";
import type { Surroundings } from "./surroundings.ts";

export interface Subject {
  readonly name: string;
  readonly pets: number;
  /** The workloads that it does not serve. */
  readonly lacks?: readonly string[];
  start(): Promise<Started>;
}

export interface Plan {
  readonly cells: readonly { readonly workload: Workload; readonly connections: number }[];
  readonly rounds: number;
  /** Duration of one measurement. */
  readonly seconds: number;
  readonly seed: number;
}

/**
 * Before the measurement a subject answers this many requests of each workload, or as many as it can in that many turns: how
 * long a runtime's compiler needs depends on requests, not on seconds.
 */
const WARM_UP = { connections: 50, seconds: 2, requests: 20_000, turns: 20 };

export async function measureRounds(
  subjects: readonly Subject[],
  { cells, rounds, seconds, seed }: Plan,
  { generator, mongod, checkpoint }: Surroundings,
  progress: Progress,
) {
  async function load(
    { url, pids }: RunningPeer,
    pets: number,
    { workload, connections, seconds, seed }: (typeof cells)[number] & { seconds: number; seed: number },
  ) {
    const requests = requestsOf(workload, pets, seed);
    return measured({ servers: pids, mongod: [mongod] }, () => generator.run({ url, connections, seconds, requests }));
  }

  async function warmUp(running: RunningPeer, pets: number, cells: Plan["cells"]): Promise<void> {
    for (const workload of new Set(cells.map(({ workload }) => workload))) {
      let answered = 0;
      for (let turn = 0; turn < WARM_UP.turns && answered < WARM_UP.requests; turn++) {
        const window = await load(running, pets, { ...WARM_UP, workload, seed: seed + turn });
        answered += window.result.requests;
      }
    }
  }

  const random = seededRandom(seed);
  const starts: Start[] = [];
  const samples: Sample[] = [];
  using bar = progress.bar("measuring", rounds * subjects.length * cells.length);
  for (let round = 1; round <= rounds; round++) {
    for (const subject of shuffled(subjects, random)) {
      const { name, pets, lacks = [] } = subject;
      const served = cells.filter(({ workload }) => !lacks.includes(workload.name));
      bar.step(0, `round ${round}, ${name}, start`);
      await checkpoint();
      const running = await subject.start();
      try {
        starts.push({ round, peer: name, readyMs: running.readyMs, restingBytes: await restingMemory(running) });
        bar.step(0, `round ${round}, ${name}, warm-up`);
        await warmUp(running, pets, served);
        for (const cell of served) {
          const { workload, connections } = cell;
          bar.step(0, `round ${round}, ${name}, ${workload.name} ${connections}`);
          const { result: answered, cost } = await load(running, pets, { ...cell, seconds, seed: seed + round });
          samples.push({ round, peer: name, workload: workload.name, connections, answered, cost });
          bar.step(1);
        }
        bar.step(cells.length - served.length);
      } finally {
        await running.stop();
      }
    }
  }
  return { starts, samples };
}
