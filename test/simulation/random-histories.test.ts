/**
 * Random histories of several clients against the whole petstore, with crashes, lost calls, lost answers and duplicates.
 * HISTORY_RUNS says how many, HISTORY_SEED which.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createWitness } from "../checker/online-checker.ts";
import { createClient, nobodyKnown } from "../workload/client.ts";
import { type Operation, prelude, programs } from "../workload/operations.ts";
import { perform } from "../workload/perform.ts";
import { historyRuns, historySeed } from "../workload/runs.ts";
import { createWorld, serviceNames } from "./cluster.ts";
import { type Dice, dice, storm, type Weather } from "./fault-injector.ts";

// Deadlines are the simulation's own: real time must not end a call.
beforeAll(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterAll(() => void vi.useRealTimers());

const counts: Record<string, number> = {};
const count = (what: string) => {
  counts[what] = (counts[what] ?? 0) + 1;
};

/** Longer than a call can be late. */
const AFTERMATH_S = 25;

async function history(clients: Operation[][], seed: number, weather: Weather) {
  const witness = createWitness();
  const world = await createWorld(witness.written);
  const known = nobodyKnown();
  const client = createClient(async (operation) => {
    const outcome = await witness.follow(operation, () => perform(world, operation));
    count(outcome.is === "refused" ? outcome.reason : outcome.is);
    return outcome;
  }, known);
  const live = async (program: Operation[]) => {
    for (const operation of program) await client.do(operation);
  };
  /** Sweepers and time go on beside the clients. */
  async function workers(busy: () => boolean, roll: Dice): Promise<void> {
    while (busy()) {
      await world.turn();
      world.advance(Math.floor(roll() * 20));
      if (roll() < 0.1) await world.sweep(serviceNames[Math.floor(roll() * serviceNames.length)] ?? "pet");
      if (roll() < 0.01) world.advance(7_000);
    }
  }

  await world.until(live(prelude));
  world.setChaos(storm(seed, weather, count));
  let busy = true;
  const all = Promise.all(clients.map(live)).then(() => {
    busy = false;
  });
  await world.until(Promise.all([all, workers(() => busy, dice(seed + 1))]));
  // Late calls arrive while sweepers give up what they take for abandoned.
  for (let second = 0; second < AFTERMATH_S; second++) {
    world.advance(1_000);
    for (const name of serviceNames) await world.until(world.sweep(name));
  }
  await world.settle();
  return witness.verdict();
}

test(`nothing is lost, doubled or stuck (HISTORY_SEED=${historySeed} HISTORY_RUNS=${historyRuns})`, async () => {
  const drawn = fc.record({
    clients: programs(4, 8),
    seed: fc.nat(),
    weather: fc.record({
      calls: fc.constantFrom(0, 0.05, 0.4),
      deaths: fc.constantFrom(0, 0.002, 0.015),
      unfairness: fc.constantFrom(1, 4, 10),
      slowness: fc.constantFrom(0, 0.5, 2),
    }),
  });
  await fc.assert(
    fc.asyncProperty(drawn, async ({ clients, seed, weather }) => {
      expect(await history(clients, seed, weather)).toEqual([]);
    }),
    { numRuns: historyRuns, seed: historySeed },
  );
  // A run in which some fault never struck proves nothing about it.
  for (const fault of ["crash", "lost", "late", "unanswered", "twice", "unknown"])
    expect([fault, counts[fault]]).toEqual([fault, expect.any(Number)]);
}, 600_000);
