/** What is over is removed at an age, and nothing that can still happen finds it missing. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Age, RETENTION } from "../../services/records/retention.ts";
import { type Operation, prelude } from "../workload/operations.ts";
import { historyRuns, historySeed } from "../workload/runs.ts";
import { oneLateCall } from "./fault-injector.ts";
import { openShop } from "./histories/history.ts";
import { manyDays, wrongAfterRemoval } from "./histories/many-days.ts";

// Deadlines are the simulation's own: real time must not end a call.
beforeAll(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterAll(() => void vi.useRealTimers());

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const start = (tombstones: Age = RETENTION.tombstones) =>
  openShop(() => {}, { retention: { ...RETENTION, tombstones } });

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
    expect(wrongAfterRemoval(shop)).toEqual([]);
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
  await fc.assert(
    fc.asyncProperty(manyDays.arbitrary, async (history) => {
      expect(await manyDays.run(history, () => {})).toEqual([]);
    }),
    { numRuns: Math.ceil(historyRuns / 4), seed: historySeed },
  );
}, 600_000);
