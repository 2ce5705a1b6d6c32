/**
 * The comparison: every peer on the same machine, the same mongod and the same pets. One peer runs at a time, and all take
 * turns in each round, in an order that changes from round to round: what else the machine does hits them alike.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { arch, cpus, release, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { MongoClient } from "mongodb";
import { freePorts } from "../../test/harness/instances.ts";
import { findMongod, startReplicaSet } from "../../test/harness/mongod.ts";
import { createGenerator, type Generator } from "../load/generator.ts";
import { requestsOf, type Workload, workloads } from "../load/workloads.ts";
import { measured } from "../measure/window.ts";
import type { Peer, Place, RunningPeer } from "../peer.ts";
import type { Progress } from "../progress.ts";
import { countPlain } from "../seed/plain.ts";
import { seeded, shuffled } from "../seed/random.ts";
import { preparePeers } from "./peers.ts";
import type { Results, Sample, Settings, Start } from "./results.ts";
import { fill, restingMemory, start } from "./running.ts";
import { ask, difference, questions } from "./sameness.ts";

export interface Comparison extends Settings {
  readonly peers: readonly string[];
  readonly workloads: readonly string[];
  /** Instead of those of each workload. */
  readonly connections: readonly number[] | undefined;
}

export async function compare(options: Comparison, progress: Progress): Promise<Results> {
  if (!findMongod()) throw new Error("There is no mongod: set MONGOD to its path, or run .ci/mongod.");
  await using stack = new AsyncDisposableStack();
  const { ready, leftOut } = await preparePeers(options.peers, progress.say);
  const set = stack.use(await startReplicaSet());
  const client = stack.use(await new MongoClient(set.uri).connect());
  const { pid: mongod, version } = await client.db("admin").command({ serverStatus: 1 });
  const generator = stack.use(createGenerator());
  const dir = mkdtempSync(join(tmpdir(), "petstore-bench-"));
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));

  const place = async ({ name }: Peer): Promise<Place> => {
    const dataDir = join(dir, name);
    mkdirSync(dataDir, { recursive: true });
    return { mongoUrl: set.uri, database: `bench_${name.replaceAll("-", "_")}`, dataDir, port: await freePorts(2) };
  };
  for (const peer of ready) {
    progress.say(`filling ${peer.name} with ${options.pets} pets`);
    await fill(peer, await place(peer), options.pets);
  }
  const startPeer = async (peer: Peer) => start(peer, await place(peer));
  await compareAnswers(ready, startPeer, options, progress);

  const measuring = { ...options, generator, mongod: Number(mongod), startPeer };
  const { starts, samples } = await rounds(ready, measuring, progress);
  await compareStock(ready, place, options);
  const { pets, rounds: number, seconds, seed } = options;
  return {
    at: new Date().toISOString(),
    machine: { ...machine(), mongod: version, generator: generator.name },
    settings: { pets, rounds: number, seconds, seed },
    peers: ready.map(({ name, title }) => ({ name, title })),
    leftOut,
    starts,
    samples,
  };
}

type StartPeer = (peer: Peer) => ReturnType<typeof start>;

/** Throws when a peer answers otherwise than the first one. */
async function compareAnswers(
  peers: readonly Peer[],
  startPeer: StartPeer,
  { pets, seed }: Settings,
  progress: Progress,
) {
  const requests = questions(pets, seed);
  let first: Parameters<typeof difference>[0] | undefined;
  for (const peer of peers.filter(({ data }) => data !== "none")) {
    progress.say(`comparing the answers of ${peer.name}`);
    const running = await startPeer(peer);
    try {
      const answers = { name: peer.name, asked: await ask(running.url, requests) };
      first ??= answers;
      const found = difference(first, answers);
      if (found) throw new Error(`The peers do not do the same, so nothing is measured. ${found}`);
    } finally {
      await running.stop();
    }
  }
}

/** Throws when a plain peer has other units in stock than its orders left there. */
async function compareStock(peers: readonly Peer[], place: (peer: Peer) => Promise<Place>, { pets }: Settings) {
  for (const peer of peers.filter(({ data }) => data === "plain")) {
    const { mongoUrl, database } = await place(peer);
    const { orders, taken } = await countPlain(mongoUrl, database, pets);
    if (orders !== taken)
      throw new Error(`${peer.name} stored ${orders} orders and took ${taken} units from the stock.`);
  }
}

interface Measuring extends Comparison {
  readonly generator: Generator;
  readonly mongod: number;
  readonly startPeer: StartPeer;
}

/**
 * Before it is measured a peer answers so many requests of each workload, or as many as it can in some turns: what the
 * compilers of a runtime do at first depends on requests, not on seconds.
 */
const WARM_UP = { connections: 50, seconds: 2, requests: 10_000, turns: 6 };

async function rounds(peers: readonly Peer[], options: Measuring, progress: Progress) {
  const random = seeded(options.seed);
  const chosen = workloads.filter(({ name }) => options.workloads.includes(name));
  const cells = chosen.flatMap((workload) =>
    (options.connections ?? workload.connections).map((connections) => ({ workload, connections })),
  );
  const starts: Start[] = [];
  const samples: Sample[] = [];
  using bar = progress.bar("measuring", options.rounds * peers.length * cells.length);
  for (let round = 1; round <= options.rounds; round++) {
    for (const peer of shuffled(peers, random)) {
      bar.step(0, `round ${round}, ${peer.name}, start`);
      const running = await options.startPeer(peer);
      try {
        const about = { round, peer: peer.name };
        starts.push({ ...about, readyMs: running.readyMs, restingBytes: await restingMemory(running) });
        for (const workload of chosen) await warmUp(running, workload, options);
        for (const { workload, connections } of cells) {
          bar.step(0, `round ${round}, ${peer.name}, ${workload.name} ${connections}`);
          const { seconds } = options;
          const { result, cost } = await load(running, workload, { connections, seconds }, options, round);
          samples.push({ ...about, workload: workload.name, connections, answered: result, cost });
          bar.step(1);
        }
      } finally {
        await running.stop();
      }
    }
  }
  return { starts, samples };
}

async function warmUp(running: RunningPeer, workload: Workload, options: Measuring): Promise<void> {
  let answered = 0;
  for (let turn = 0; turn < WARM_UP.turns && answered < WARM_UP.requests; turn++) {
    answered += (await load(running, workload, WARM_UP, options)).result.requests;
  }
}

/** More failures would make the numbers wrong: an error is cheaper than what was asked for. Fewer are told with them. */
const MAX_FAILURES = 0.01;

async function load(
  { url, pids }: RunningPeer,
  workload: Workload,
  { connections, seconds }: { readonly connections: number; readonly seconds: number },
  { pets, seed, generator, mongod }: Measuring,
  round = 0,
) {
  const requests = requestsOf(workload, pets, seed + round);
  const window = await measured({ servers: pids, mongod: [mongod] }, () =>
    generator.run({ url, connections, seconds, requests }),
  );
  const { requests: count, refused, broken } = window.result;
  if (refused + broken > count * MAX_FAILURES) {
    throw new Error(
      `Of ${count} requests of ${workload.name} to ${url}, ${refused} were answered with an error and ${broken} not at all.`,
    );
  }
  return window;
}

function machine() {
  const [cpu] = cpus();
  return {
    cpu: `${cpu?.model.trim()}, ${arch()}`,
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
  };
}
