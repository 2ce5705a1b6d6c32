/**
 * Several clients against the whole petstore, with crashes, stops in good order, lost calls, lost answers and duplicates, and
 * watchers that are told of it.
 */
import { type Random, seededRandom } from "@petstore/runtime/clock";
import { type ServiceName, serviceNames } from "../../../processes/names.ts";
import { violationsIn } from "../../checker/events.ts";
import { type Kind, prelude, programs } from "../../workload/operations.ts";
import { kinds, startWatcher, type Watcher } from "../../workload/watchers.ts";
import { randomFaults } from "../fault-injector.ts";
import { type History, type HistoryKind, histories, openShop, strikesOf, type Witness } from "./history.ts";

/** Longer than a call can be late, in steps shorter than any worker waits before it gives up what it takes for abandoned. */
const AFTERMATH_MS = 26_000;
const AFTERMATH_STEP_MS = 2_000;
/** So many turns at most a process has to end its streams. */
const DRAIN_TURNS = 400;
/** So many turns at most a watcher leaves its stream alone that has been told enough for now: changes pile up. */
const FULL_TURNS = 200;

async function run(drawn: History, witness: Witness): Promise<readonly string[]> {
  const { days, seed, rates, replicas } = drawn;
  const { checker, cluster, run, live, runAllWorkers } = await openShop(witness, { replicas });
  const strikes = strikesOf(drawn, witness);
  const watchers: Watcher[] = [];
  const appetite = seededRandom(seed + 2);
  const turns = (count: number) => cluster.turn(Math.floor(count));
  const digest = () => turns(appetite() < 0.3 ? appetite() * FULL_TURNS : 0);
  const watch = (kind: Kind, snapshot: boolean) => {
    const { history } = checker;
    watchers.push(startWatcher(cluster, kind, { snapshot, history, pause: () => cluster.turn(), digest }));
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
    if (!strikes("stop", name)) return;
    cluster.drain(name);
    await turns(graceTurns);
    cluster.kill(name);
  }

  for (const kind of kinds) watch(kind, false);
  await cluster.until(Promise.all(watchers.map(({ begun }) => begun)));
  await run(...prelude);
  cluster.injectFaults(randomFaults(seed, rates, strikes));
  let busy = true;
  const all = live(days[0] ?? []).then(() => {
    busy = false;
  });
  await cluster.until(Promise.all([all, workers(() => busy, seededRandom(seed + 1))]));
  // Late calls arrive while recovery workers give up what they take for abandoned.
  for (let passed = 0; passed < AFTERMATH_MS; passed += AFTERMATH_STEP_MS) {
    cluster.advance(AFTERMATH_STEP_MS);
    await runAllWorkers();
  }
  await cluster.settle();
  for (const { stop, streams, watch } of watchers) {
    await cluster.until(stop());
    if (streams() > 1) witness({ is: "happened", what: watch.snapshot ? "snapshot resumed" : "resumed" });
  }
  const watches = watchers.map(({ watch }) => watch);
  return [...checker.verdict(), ...violationsIn(watches, checker.history)];
}

export const oneDay: HistoryKind = {
  arbitrary: histories(
    programs(4, 8).map((clients) => [clients]),
    { calls: [0, 0.05, 0.4], deaths: [0, 0.002, 0.015], unfairness: [1, 4, 10], slowness: [0, 0.5, 2] },
  ),
  run,
};
