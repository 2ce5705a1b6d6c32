/** What is over is removed at an age, and nothing that can still happen finds it missing. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { isTombstone as isCategoryTombstone } from "../../services/category/model.ts";
import { isTombstone as isEntryTombstone } from "../../services/inventory/model.ts";
import { isTombstone as isOrderTombstone } from "../../services/order/model.ts";
import { isTombstone as isPetTombstone } from "../../services/pet/model.ts";
import { type Age, RETENTION, type Retention } from "../../services/resource/retention.ts";
import { createOnlineChecker } from "../checker/online-checker.ts";
import { createClient } from "../workload/client.ts";
import { type Operation, prelude, programs } from "../workload/operations.ts";
import { perform } from "../workload/perform.ts";
import { historyRuns, historySeed } from "../workload/runs.ts";
import { createCluster, serviceNames } from "./cluster.ts";
import { oneLateCall, randomFaults } from "./fault-injector.ts";

// Deadlines are the simulation's own: real time must not end a call.
beforeAll(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterAll(() => void vi.useRealTimers());

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

async function start(tombstones: Age = RETENTION.tombstones) {
  const retention: Retention = { ...RETENTION, tombstones };
  const checker = createOnlineChecker();
  const cluster = await createCluster(checker.written, { retention });
  const client = createClient((operation) => checker.follow(operation, () => perform(cluster, operation)));
  const runAllWorkers = async () => {
    for (const name of serviceNames) await cluster.until(cluster.runWorkers(name));
  };
  const run = async (...operations: Operation[]) => {
    for (const operation of operations) await cluster.until(client.do(operation));
  };
  return { checker, cluster, client, run, runAllWorkers };
}

type Shop = Awaited<ReturnType<typeof start>>;

/** Of each record there is what is no tombstone, and nothing else. */
function expectNoTombstones({ cluster, checker: { state } }: Shop): void {
  const present = {
    categories: [...state.categories.values()].filter((doc) => !isCategoryTombstone(doc)),
    pets: [...state.pets.values()].filter((doc) => !isPetTombstone(doc)),
    orders: [...state.orders.values()].filter((doc) => !isOrderTombstone(doc)),
    inventory: [...state.inventory.values()].filter((doc) => !isEntryTombstone(doc)),
    keys: [],
  };
  for (const [collection, docs] of Object.entries(present))
    expect([collection, cluster.stored(collection)]).toEqual([collection, docs.length]);
}

describe("a key that is asked again when its record has been over for a day less an hour", () => {
  const key = "key";
  const creates: [Operation, Operation][] = [
    [
      { do: "create category", mark: 1, key },
      { do: "delete category", id: 2, mark: 2 },
    ],
    [
      { do: "create pet", category: 0, mark: 1, key },
      { do: "delete pet", id: 2, mark: 2 },
    ],
    [
      { do: "place order", pet: 1, quantity: 1, mark: 1, key },
      { do: "cancel order", id: 0, mark: 2 },
    ],
  ];

  async function askAgain([create, end]: [Operation, Operation], tombstones?: Age) {
    const shop = await start(tombstones);
    const { cluster, client, run, runAllWorkers, checker } = shop;
    await run(...prelude);
    const first = await cluster.until(client.do(create));
    await run(end);
    for (let hour = 0; hour < 23; hour++) {
      cluster.advance(HOUR_MS);
      await runAllWorkers();
    }
    const again = await cluster.until(client.do(create));
    await cluster.settle();
    return { shop, first, again, verdict: checker.verdict() };
  }

  test.each(creates)("$do: is answered as at first, and nothing comes back", async (...operations) => {
    const { shop, first, again, verdict } = await askAgain(operations);
    expect(first.is).toBe("done");
    expect(again).toEqual(first);
    expect(verdict).toEqual([]);
    shop.cluster.advance(10 * DAY_MS);
    await shop.runAllWorkers();
    expectNoTombstones(shop);
  });

  test.each(creates)("$do: would find it missing if tombstones were kept for half a day", async (...operations) => {
    const { verdict } = await askAgain(operations, { ageMs: 12 * HOUR_MS, periodMs: HOUR_MS });
    expect(verdict).not.toEqual([]);
  });
});

describe("a call of a creation that arrives 15 seconds later, when the pet has been deleted", () => {
  const [DELETED_S, LATE_S, OVER_S] = [10, 15, 20];

  /** What is wrong after each of the calls was late, while time goes on and workers run. */
  async function withLateCalls(tombstones: Age): Promise<string[]> {
    const found: string[] = [];
    for (let late = 0, sent = late + 1; sent > late; late++) {
      const { cluster, checker, client, run, runAllWorkers } = await start(tombstones);
      await run({ do: "create category", mark: 1 });
      const call = oneLateCall(late, LATE_S * 1_000, cluster.kill);
      cluster.injectFaults(call.faults);
      await cluster.until(client.once({ do: "create pet", category: 0, mark: 2 }));
      for (let second = 0; second < OVER_S; second++) {
        cluster.advance(1_000);
        await runAllWorkers();
        if (second === DELETED_S) await cluster.until(client.once({ do: "delete pet", id: 0, mark: 3 }));
      }
      await cluster.settle();
      found.push(...checker.verdict());
      sent = call.sent();
    }
    return found;
  }

  test("finds the tombstones that it needs", async () => {
    expect(await withLateCalls({ ageMs: 30_000, periodMs: 1_000 })).toEqual([]);
  });

  test("would find them missing if they were kept for a second", async () => {
    expect(await withLateCalls({ ageMs: 1_000, periodMs: 1_000 })).not.toEqual([]);
  });
});

test("a process that remembers a category learns that it is gone, also when its deletion guard is", async () => {
  const { cluster, checker, client, run, runAllWorkers } = await start();
  await run({ do: "create category", mark: 1 }, { do: "create pet", category: 0, mark: 2 });
  await run({ do: "delete pet", id: 0, mark: 3 }, { do: "delete category", id: 0, mark: 4 });
  expect(cluster.stored("deletion_guards")).toBe(1);
  cluster.advance(10 * DAY_MS);
  await runAllWorkers();
  expect(cluster.stored("deletion_guards")).toBe(0);
  const outcome = await cluster.until(client.do({ do: "create pet", category: 0, mark: 5 }));
  expect(outcome).toEqual({ is: "refused", reason: "CATEGORY_NOT_FOUND" });
  expect(checker.verdict()).toEqual([]);
});

test(`histories go on over jumps of time, and leave no tombstone (HISTORY_SEED=${historySeed})`, async () => {
  const drawn = fc.record({
    days: fc.array(programs(3, 6), { minLength: 2, maxLength: 3 }),
    seed: fc.nat(),
    rates: fc.record({
      calls: fc.constantFrom(0.05, 0.4),
      deaths: fc.constantFrom(0, 0.01),
      unfairness: fc.constantFrom(1, 4),
      slowness: fc.constantFrom(0, 0.5),
    }),
  });
  await fc.assert(
    fc.asyncProperty(drawn, async ({ days, seed, rates }) => {
      const shop = await start();
      const { checker, cluster, client, run, runAllWorkers } = shop;
      await run(...prelude);
      for (const [day, clients] of days.entries()) {
        const today = ({ mark, key, ...operation }: Operation): Operation =>
          ({ ...operation, mark: mark + 10_000 * day, key: key && `${key} of day ${day}` }) as Operation;
        const live = async (program: Operation[]) => {
          for (const operation of program) await client.do(today(operation));
        };
        cluster.injectFaults(randomFaults(seed + day, rates, () => {}));
        await cluster.until(Promise.all(clients.map(live)));
        await cluster.settle();
        // Also so far that the keys are over, and the tombstones are not.
        for (const jump of [3 * DAY_MS, 7 * DAY_MS]) {
          cluster.advance(jump);
          await runAllWorkers();
        }
        expectNoTombstones(shop);
      }
      expect(checker.verdict()).toEqual([]);
    }),
    { numRuns: Math.ceil(historyRuns / 4), seed: historySeed },
  );
}, 600_000);
