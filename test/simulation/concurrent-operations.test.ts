/**
 * A few operations that meet on the same records, in a petstore in which nothing goes wrong but the order of things: here
 * the races are found that long histories rarely come to. HISTORY_RUNS says how many, HISTORY_SEED which.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createOnlineChecker } from "../checker/online-checker.ts";
import { createClient } from "../workload/client.ts";
import { type Operation, prelude, UNKNOWN } from "../workload/operations.ts";
import { perform } from "../workload/perform.ts";
import { historyRuns, historySeed } from "../workload/runs.ts";
import { createCluster } from "./cluster.ts";
import { randomFaults } from "./fault-injector.ts";

// Deadlines are the simulation's own: real time must not end a call.
beforeAll(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterAll(() => void vi.useRealTimers());

const before: Operation[] = [
  ...prelude,
  { do: "place order", pet: 0, quantity: 1, mark: 905 },
  { do: "create category", mark: 906 },
];
/** The category without pets. */
const EMPTY = 2;
/** The record that was made first, or the one that is just being made. */
const which = fc.constantFrom(0, UNKNOWN);
const act: fc.Arbitrary<Operation> = fc
  .oneof(
    fc.record({ do: fc.constant("create pet" as const), category: fc.constantFrom(0, EMPTY, UNKNOWN) }),
    fc.record({ do: fc.constant("create category" as const) }),
    fc.record({ do: fc.constant("place order" as const), pet: which, quantity: fc.constant(1) }),
    fc.record({ do: fc.constant("change pet" as const), id: which, category: fc.constantFrom(EMPTY, UNKNOWN) }),
    fc.record({ do: fc.constant("delete category" as const), id: fc.constant(EMPTY) }),
    fc.record({ do: fc.constant("delete pet" as const), id: which }),
    fc.record({ do: fc.constantFrom("complete order" as const, "cancel order" as const), id: which }),
    fc.record({ do: fc.constant("stock" as const), id: which, quantity: fc.constantFrom(0, 2) }),
    fc.record({
      do: fc.constantFrom("see pet" as const, "see order" as const, "see inventory" as const),
      id: which,
      how: fc.constantFrom("alone" as const, "listed" as const),
    }),
  )
  .map((operation) => ({ ...operation, mark: 0 }));

async function meet(acts: readonly Operation[], seed: number, rates: { unfairness: number; slowness: number }) {
  const checker = createOnlineChecker();
  const cluster = await createCluster(checker.written);
  const client = createClient((operation) => checker.follow(operation, () => perform(cluster, operation)));
  for (const operation of before) await cluster.until(client.do(operation));
  cluster.injectFaults(randomFaults(seed, { calls: 0, deaths: 0, ...rates }, () => {}));
  await cluster.until(Promise.all(acts.map((operation, mark) => client.do({ ...operation, mark: mark + 1 }))));
  await cluster.settle();
  return checker.verdict();
}

test(`operations that meet leave nothing lost, doubled or stuck (HISTORY_SEED=${historySeed} HISTORY_RUNS=${historyRuns})`, async () => {
  const drawn = fc.record({
    acts: fc.array(act, { minLength: 2, maxLength: 6 }),
    seed: fc.nat(),
    rates: fc.record({ unfairness: fc.constantFrom(1, 4, 10), slowness: fc.constantFrom(0, 0.5, 2) }),
  });
  await fc.assert(
    fc.asyncProperty(drawn, async ({ acts, seed, rates }) => {
      expect(await meet(acts, seed, rates)).toEqual([]);
    }),
    { numRuns: 10 * historyRuns, seed: historySeed },
  );
}, 600_000);
