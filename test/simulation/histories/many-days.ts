/** Histories that go on over jumps of time: what is over is removed at an age, and nothing that can still happen misses it. */
import fc from "fast-check";
import { isTombstone as isCategoryTombstone } from "../../../services/category/model.ts";
import { isTombstone as isEntryTombstone } from "../../../services/inventory/model.ts";
import { isTombstone as isOrderTombstone } from "../../../services/order/model.ts";
import { isTombstone as isPetTombstone } from "../../../services/pet/model.ts";
import { type Operation, prelude, programs } from "../../workload/operations.ts";
import { randomFaults } from "../fault-injector.ts";
import { type History, type HistoryKind, histories, openShop, type Shop, strikesOf, type Witness } from "./history.ts";

const DAY_MS = 24 * 3_600_000;

/** What was to be removed and was not, and the other way round: of each record there is what is no tombstone. */
export function wrongAfterRemoval({ cluster, checker: { state } }: Pick<Shop, "cluster" | "checker">): string[] {
  const left = {
    categories: [...state.categories.values()].filter((doc) => !isCategoryTombstone(doc)),
    pets: [...state.pets.values()].filter((doc) => !isPetTombstone(doc)),
    orders: [...state.orders.values()].filter((doc) => !isOrderTombstone(doc)),
    inventory: [...state.inventory.values()].filter((doc) => !isEntryTombstone(doc)),
    keys: [],
  };
  return Object.entries(left).flatMap(([collection, { length }]) => {
    const stored = cluster.stored(collection);
    return stored === length ? [] : [`${stored} documents are left in ${collection} and ${length} are no tombstones`];
  });
}

async function run(drawn: History, witness: Witness): Promise<readonly string[]> {
  const { days, seed, rates, replicas } = drawn;
  const shop = await openShop(witness, { replicas });
  const { checker, cluster, run, live, runAllWorkers } = shop;
  const strikes = strikesOf(drawn, witness);
  const found: string[] = [];
  await run(...prelude);
  for (const [day, clients] of days.entries()) {
    const today = ({ mark, key, ...operation }: Operation): Operation =>
      ({ ...operation, mark: mark + 10_000 * day, key: key && `${key}-of-day-${day}` }) as Operation;
    cluster.injectFaults(randomFaults(seed + day, rates, strikes));
    await cluster.until(live(clients.map((program) => program.map(today))));
    await cluster.settle();
    // Also so far that the keys are over, and the tombstones are not.
    for (const jump of [3 * DAY_MS, 7 * DAY_MS]) {
      witness({ is: "happened", what: "jump of time" });
      cluster.advance(jump);
      await runAllWorkers();
    }
    found.push(...wrongAfterRemoval(shop));
  }
  return [...found, ...checker.verdict()];
}

export const manyDays: HistoryKind = {
  arbitrary: histories(fc.array(programs(3, 6), { minLength: 2, maxLength: 3 }), {
    calls: [0.05, 0.4],
    deaths: [0, 0.01],
    unfairness: [1, 4],
    slowness: [0, 0.5],
  }),
  run,
};
