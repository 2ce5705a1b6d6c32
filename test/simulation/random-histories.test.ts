/**
 * Random histories of several clients against the whole petstore, with crashes, lost calls, lost answers and duplicates, and of
 * watchers that are told of it. HISTORY_RUNS says how many, HISTORY_SEED which.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Random, seededRandom } from "../../packages/runtime/fixtures/random.ts";
import type { ServiceName } from "../../processes/names.ts";
import { violationsIn } from "../checker/events.ts";
import { createOnlineChecker } from "../checker/online-checker.ts";
import { createClient, nobodyKnown } from "../workload/client.ts";
import { type Kind, type Operation, prelude, programs } from "../workload/operations.ts";
import { perform } from "../workload/perform.ts";
import { historyRuns, historySeed } from "../workload/runs.ts";
import { kinds, startWatcher, type Watcher } from "../workload/watchers.ts";
import { createCluster, serviceNames } from "./cluster.ts";
import { type FaultRates, randomFaults } from "./fault-injector.ts";

// Deadlines are the simulation's own: real time must not end a call.
beforeAll(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterAll(() => void vi.useRealTimers());

const counts: Record<string, number> = {};
const count = (what: string) => {
  counts[what] = (counts[what] ?? 0) + 1;
};

/** Longer than a call can be late. */
const AFTERMATH_S = 25;
/** So many turns at most a process has to end its streams. */
const DRAIN_TURNS = 400;
/** So many turns at most a watcher leaves its stream alone that has been told enough for now: changes pile up. */
const FULL_TURNS = 200;

async function history(clients: Operation[][], seed: number, rates: FaultRates, replicas: number) {
  const checker = createOnlineChecker();
  const cluster = await createCluster(checker.written, { replicas });
  const known = nobodyKnown();
  const client = createClient(async (operation) => {
    const outcome = await checker.follow(operation, () => perform(cluster, operation));
    count(outcome.is === "refused" ? outcome.reason : outcome.is);
    return outcome;
  }, known);
  const live = async (program: Operation[]) => {
    for (const operation of program) await client.do(operation);
  };
  const watchers: Watcher[] = [];
  const appetite = seededRandom(seed + 2);
  const turns = async (count: number) => {
    for (let left = Math.floor(count); left > 0; left--) await cluster.turn();
  };
  const digest = () => turns(appetite() < 0.3 ? appetite() * FULL_TURNS : 0);
  const watch = (kind: Kind, snapshot: boolean) => {
    const { history } = checker;
    watchers.push(startWatcher(cluster, kind, { snapshot, history, pause: cluster.turn, digest }));
  };
  const latecomers = [...kinds];

  /** Recovery workers and time go on beside the clients, processes are stopped in good order, and watchers come. */
  async function workers(busy: () => boolean, roll: Random): Promise<void> {
    while (busy()) {
      await cluster.turn();
      cluster.advance(Math.floor(roll() * 20));
      const some = serviceNames[Math.floor(roll() * serviceNames.length)] ?? "pet";
      if (roll() < 0.1) await cluster.runWorkers(some);
      if (roll() < 0.01) cluster.advance(7_000);
      if (roll() < 0.06) await stop(some, roll() * DRAIN_TURNS);
      const late = roll() < 0.02 && latecomers.pop();
      if (late) watch(late, true);
    }
  }

  async function stop(name: ServiceName, graceTurns: number): Promise<void> {
    count("stopped");
    cluster.drain(name);
    await turns(graceTurns);
    cluster.kill(name);
  }

  for (const kind of kinds) watch(kind, false);
  await cluster.until(Promise.all(watchers.map(({ begun }) => begun)));
  await cluster.until(live(prelude));
  cluster.injectFaults(randomFaults(seed, rates, count));
  let busy = true;
  const all = Promise.all(clients.map(live)).then(() => {
    busy = false;
  });
  await cluster.until(Promise.all([all, workers(() => busy, seededRandom(seed + 1))]));
  // Late calls arrive while recovery workers give up what they take for abandoned.
  for (let second = 0; second < AFTERMATH_S; second++) {
    cluster.advance(1_000);
    for (const name of serviceNames) await cluster.until(cluster.runWorkers(name));
  }
  await cluster.settle();
  for (const { stop, streams, watch } of watchers) {
    await cluster.until(stop());
    if (streams() > 1) count(watch.snapshot ? "snapshot resumed" : "resumed");
  }
  const watches = watchers.map(({ watch }) => watch);
  return [...checker.verdict(), ...violationsIn(watches, checker.history)];
}

test(`nothing is lost, doubled or stuck (HISTORY_SEED=${historySeed} HISTORY_RUNS=${historyRuns})`, async () => {
  const drawn = fc.record({
    clients: programs(4, 8),
    seed: fc.nat(),
    replicas: fc.constantFrom(1, 2),
    rates: fc.record({
      calls: fc.constantFrom(0, 0.05, 0.4),
      deaths: fc.constantFrom(0, 0.002, 0.015),
      unfairness: fc.constantFrom(1, 4, 10),
      slowness: fc.constantFrom(0, 0.5, 2),
    }),
  });
  await fc.assert(
    fc.asyncProperty(drawn, async ({ clients, seed, rates, replicas }) => {
      expect(await history(clients, seed, rates, replicas)).toEqual([]);
    }),
    { numRuns: historyRuns, seed: historySeed },
  );
  // A run in which some fault never struck proves nothing about it.
  const faults = ["crash", "stopped", "lost", "late", "unanswered", "twice", "unknown", "resumed", "snapshot resumed"];
  for (const fault of faults) expect([fault, counts[fault]]).toEqual([fault, expect.any(Number)]);
}, 600_000);
