/**
 * A key that is sent again when its time is nearly over: when its last hour begins, in which it is renewed; when it expires;
 * when it is removed, or the tombstone of its record is. Its first attempt was answered, and its record may have ended since;
 * or it crashed, and may have left anything.
 */

import { type Random, seededRandom } from "@petstore/runtime/clock";
import fc from "fast-check";
import type { ServiceName } from "../../../processes/names.ts";
import type { CollectionName } from "../../checker/state.ts";
import { type Operation, prelude } from "../../workload/operations.ts";
import type { Stored } from "../disk.ts";
import { noFaults, randomFaults } from "../fault-injector.ts";
import { type Event, type History, type HistoryKind, histories, openShop, strikesOf, type Witness } from "./history.ts";

const HOUR_MS = 3_600_000;
/** So many hours after it was claimed the key is in its last hour, is over, is removed, and so is a tombstone. */
const [LAST_HOUR, OVER, REMOVED, FORGOTTEN] = [24, 25, 26, 10 * 24];
/** So many steps at most the first attempt takes before it crashes. */
const STEPS = 20;
/** So many turns at most pass before the hour does. */
const TURNS = 60;

/** Once the key is over it stands for another record. What follows # is not sent. */
const [FIRST, NEXT] = [
  { key: "key", mark: 1 },
  { key: "key#next", mark: 2 },
];
interface Create {
  readonly make: Operation;
  /** Ends what it made. */
  readonly end: Operation;
  readonly service: ServiceName;
  readonly records: CollectionName;
}
/** Four units are too many. */
const orders = [1, 1, 4].map(
  (quantity): Create => ({
    make: { do: "place order", pet: 1, quantity, ...FIRST },
    end: { do: "cancel order", id: 0, mark: 3 },
    ...{ service: "order", records: "orders" },
  }),
);
const creates: readonly Create[] = [
  {
    make: { do: "create category", ...FIRST },
    end: { do: "delete category", id: 2, mark: 3 },
    ...{ service: "category", records: "categories" },
  },
  {
    make: { do: "create pet", category: 0, ...FIRST },
    end: { do: "delete pet", id: 2, mark: 3 },
    ...{ service: "pet", records: "pets" },
  },
  ...orders,
];
const act = fc.constantFrom("make" as const, "make" as const, "make" as const, "end" as const);

/** The first attempt, and those that meet when the hour passes. */
const days = fc
  .tuple(fc.constantFrom(...creates), fc.array(act, { minLength: 2, maxLength: 5 }))
  .map(([create, acts]): History["days"] => [[[create.make]], acts.map((act) => [create[act]])]);

const oneOf = <T>(roll: Random, all: readonly T[]): T => all[Math.floor(roll() * all.length)] as T;

async function run(drawn: History, witness: Witness): Promise<readonly string[]> {
  const { days, seed, rates, replicas } = drawn;
  const [first] = days[0]?.flat() ?? [];
  const create = creates.find(({ make }) => make.do === first?.do);
  if (!first || !create) return [];
  const { service, records, end } = create;
  const roll = seededRandom(seed + 1);
  const shop = await openShop(noticing, { replicas });
  const { checker, cluster, run, live, runAllWorkers } = shop;
  let key: Stored | undefined;
  const record = () => checker.state[records].get(Number(key?.recordId)) as Stored | undefined;
  const hasEnded = () => ["DELETED", "CANCELLED", "ABORTED"].includes(String(record()?.state));
  /** Clients that asked before the hour passed, and are not answered. */
  const early = new Set<number>();
  let [isDone, hasPassed] = [false, false];

  function noticing(event: Event): void {
    witness(event);
    const happened = (
      what: "expired under an attempt" | "claimed anew beside a tombstone" | "asked again after its record's end",
    ) => witness({ is: "happened", what: `key ${what}` });
    if (event.is === "asked" && event.operation.key && !hasPassed) early.add(event.client);
    if (event.is === "answered") {
      early.delete(event.client);
      isDone = event.outcome.is === "done";
      if (event.operation.key && isDone && hasEnded()) happened("asked again after its record's end");
    }
    if (event.is !== "wrote" || event.collection !== "keys") return;
    if (key && !event.before && early.size > 0) happened("expired under an attempt");
    if (key && !event.before && hasEnded()) happened("claimed anew beside a tombstone");
    key = event.after;
  }

  await run(...prelude);
  let steps = roll() < 0.7 ? roll() * STEPS : Number.POSITIVE_INFINITY;
  cluster.injectFaults({
    ...noFaults,
    dies: (name) => name === service && --steps < 0 && steps > -1,
    // Nobody sends it again before the last hours.
    deliver: ({ from }) => (from === "client" && steps < 0 ? "lost" : "once"),
  });
  await cluster.until(live([[first]]));
  cluster.injectFaults(noFaults);
  await cluster.untilIdle();
  if (isDone && roll() < 0.5) await cluster.until(live([[end]]));
  if (roll() < 0.7) await cluster.settle();

  // While the record may still come of the first attempt, all make that one. One that is there answers until the key is over.
  const isAbandoned = records === "orders" && record()?.state === "ABORTED" && !record()?.refusal;
  const isOpen = !record() || isAbandoned;
  const isNext = !isOpen && roll() < 0.5;
  const closed = isNext ? [OVER, REMOVED, FORGOTTEN] : [LAST_HOUR];
  const hours = oneOf(roll, isOpen ? [LAST_HOUR, OVER, OVER, REMOVED] : closed);
  const claimed = Number(key?.hour ?? Math.floor(cluster.clock() / HOUR_MS));
  // Who asks before the key is over is told that it was used.
  const passing = (claimed + hours) * HOUR_MS - (isNext && hours === OVER ? 0 : 1);
  cluster.advance(passing - HOUR_MS - cluster.clock());
  await runAllWorkers();
  cluster.advance(HOUR_MS);
  witness({ is: "happened", what: "jump of time" });

  cluster.injectFaults(randomFaults(seed, rates, strikesOf(drawn, witness)));
  const again = (operation: Operation): Operation => ({ ...operation, ...(operation.key && isNext && NEXT) });
  let busy = true;
  const all = live((days[1] ?? []).map((program) => program.map(again))).then(() => {
    busy = false;
  });
  async function passes(): Promise<void> {
    for (let left = Math.floor(roll() * TURNS); busy && left > 0; left--) await cluster.turn();
    hasPassed = true;
    cluster.advance(2);
    while (busy) {
      await cluster.turn();
      cluster.advance(Math.floor(roll() * 20));
      if (roll() < 0.1) await cluster.runWorkers(oneOf(roll, [service, service, "inventory"]));
    }
  }
  await cluster.until(Promise.all([all, passes()]));
  await cluster.settle();
  return checker.verdict();
}

export const lastHours: HistoryKind = {
  arbitrary: histories(days, {
    calls: [0, 0, 0.1],
    deaths: [0, 0, 0.005],
    unfairness: [1, 4, 10],
    slowness: [0, 0.5, 2],
  }),
  run,
};
