/** The comparison: every peer on the same machine, the same mongod and the same pets. */
import { workloads } from "../load/workloads.ts";
import type { Peer } from "../peer.ts";
import type { Progress } from "../progress.ts";
import { countPlain } from "../seed/plain.ts";
import { preparePeers } from "./peers.ts";
import type { Results, Settings } from "./results.ts";
import { measureRounds } from "./rounds.ts";
import { fill, type Started, start } from "./running.ts";
import { ask, difference, questions } from "./sameness.ts";
import { openSurroundings, type Surroundings } from "./surroundings.ts";

export interface Comparison extends Settings {
  readonly peers: readonly string[];
  readonly workloads: readonly string[];
  /** Overrides the numbers of connections of every workload. */
  readonly connections: readonly number[] | undefined;
}

export async function compare(options: Comparison, progress: Progress): Promise<Results> {
  const { pets, rounds, seconds, seed } = options;
  await using stack = new AsyncDisposableStack();
  const { ready, leftOut } = await preparePeers(options.peers, progress.say);
  const surroundings = await openSurroundings(stack);
  for (const peer of ready) {
    progress.say(`filling ${peer.name} with ${pets} pets`);
    await fill(peer.data, await surroundings.place(peer.name), pets);
  }
  const startPeer = async (peer: Peer) => start(peer, await surroundings.place(peer.name));
  await compareAnswers(ready, startPeer, options, progress);

  const chosen = workloads.filter(({ name }) => options.workloads.includes(name));
  const cells = chosen.flatMap((workload) =>
    (options.connections ?? workload.connections).map((connections) => ({ workload, connections })),
  );
  const subjects = ready.map((peer) => ({ ...peer, pets, start: () => startPeer(peer) }));
  const measured = await measureRounds(subjects, { cells, rounds, seconds, seed }, surroundings, progress);
  await compareStock(ready, surroundings, pets);
  return {
    at: new Date().toISOString(),
    machine: surroundings.machine,
    settings: { pets, rounds, seconds, seed },
    peers: ready.map(({ name, title }) => ({ name, title })),
    leftOut,
    ...measured,
  };
}

/** Throws when the answers of a peer differ from those of the first one that was asked the same. */
async function compareAnswers(
  peers: readonly Peer[],
  startPeer: (peer: Peer) => Promise<Started>,
  { pets, seed }: Settings,
  progress: Progress,
) {
  const first = new Map<string, Parameters<typeof difference>[0]>();
  for (const peer of peers.filter(({ data }) => data !== "none")) {
    progress.say(`comparing the answers of ${peer.name}`);
    const running = await startPeer(peer);
    try {
      for (const [workload, requests] of questions(pets, seed)) {
        if (peer.lacks?.includes(workload)) continue;
        const answers = { name: peer.name, asked: await ask(running.url, requests) };
        const found = difference(first.get(workload) ?? answers, answers);
        if (!first.has(workload)) first.set(workload, answers);
        if (found) throw new Error(`The peers do not do the same, so nothing is measured. ${found}`);
      }
    } finally {
      await running.stop();
    }
  }
  const asked = first.values().reduce((sum, { asked }) => sum + asked.length, 0);
  progress.say(`all answer the same to ${asked} requests`);
}

/** Throws when the stock of a plain peer does not match its orders. */
async function compareStock(peers: readonly Peer[], { place }: Surroundings, pets: number) {
  for (const { name } of peers.filter(({ data }) => data === "plain")) {
    const { mongoUrl, database } = await place(name);
    const { orders, taken } = await countPlain(mongoUrl, database, pets);
    if (orders !== taken) throw new Error(`${name} stored ${orders} orders and took ${taken} units from the stock.`);
  }
}
