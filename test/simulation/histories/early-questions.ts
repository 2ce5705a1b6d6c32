/**
 * Orders about which Inventory asks while they are placed, completed and cancelled, at once and again: its clock runs ahead, as
 * it does when the machine of Order sleeps.
 */

import { seededRandom } from "@petstore/runtime/clock";
import fc from "fast-check";
import { type Operation, prelude, UNKNOWN } from "../../workload/operations.ts";
import { randomFaults } from "../fault-injector.ts";
import { type History, type HistoryKind, histories, openShop, strikesOf, type Witness } from "./history.ts";

/** Longer than Inventory waits until it asks. */
const AHEAD_MS = 7_000;
const before: Operation[] = [...prelude, { do: "place order", pet: 0, quantity: 1, mark: 905 }];
/** The order that was there before, or one that is just being placed. */
const id = fc.constantFrom(0, UNKNOWN, UNKNOWN);
const keyed: Operation = { do: "place order", pet: 1, quantity: 1, key: "key", mark: 100 };
const act: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      ...{ do: fc.constant("place order" as const), mark: fc.constant(0), quantity: fc.constant(1) },
      // The one has a single unit, which is held, and the other three.
      ...{ pet: fc.constantFrom(0, 1, 1, 1), complete: fc.constantFrom(undefined, undefined, true) },
    }),
  },
  { weight: 3, arbitrary: fc.constant(keyed) },
  {
    weight: 3,
    arbitrary: fc.record({
      ...{ do: fc.constantFrom("complete order" as const, "cancel order" as const), mark: fc.constant(0), id },
    }),
  },
);

async function run(drawn: History, witness: Witness): Promise<readonly string[]> {
  const { days, seed, rates, replicas } = drawn;
  const { checker, cluster, run, live } = await openShop(witness, { replicas });
  await run(...before);
  cluster.injectFaults(randomFaults(seed, rates, strikesOf(drawn, witness)));
  let busy = true;
  const all = live(days[0] ?? []).then(() => {
    busy = false;
  });
  const roll = seededRandom(seed + 1);
  async function questions(): Promise<void> {
    while (busy) {
      await cluster.turn();
      cluster.advance(Math.floor(roll() * 20));
      if (roll() < 0.2) cluster.goAhead("inventory", AHEAD_MS);
      if (roll() < 0.5) await cluster.runWorkers("inventory", "inventory.reservations");
    }
  }
  await cluster.until(Promise.all([all, questions(), questions(), questions()]));
  await cluster.settle();
  return checker.verdict();
}

export const earlyQuestions: HistoryKind = {
  arbitrary: histories(
    fc
      .array(act, { minLength: 3, maxLength: 8 })
      .map((acts) => [acts.map((act, index) => [{ ...act, mark: act.mark || index + 1 }])]),
    { calls: [0, 0, 0.1], deaths: [0, 0, 0.002], unfairness: [1, 4, 10], slowness: [0.5, 2, 5] },
  ),
  run,
};
