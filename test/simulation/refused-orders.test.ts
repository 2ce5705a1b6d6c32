/** What orders leave behind that were refused. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Operation } from "../workload/operations.ts";
import { perform } from "../workload/perform.ts";
import { createCluster } from "./cluster.ts";

// Deadlines are the simulation's own: real time must not end a call.
beforeAll(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterAll(() => void vi.useRealTimers());

const ORDERS = 600;
const NO_PET = 77;
const order: Operation = { do: "place order", pet: NO_PET, quantity: 1, mark: 1 };

/** Refuses so many orders, and places one. Returns the documents that were written before that, by collection. */
async function refuse(orderOf: (number: number) => Operation) {
  const written = new Map<string, Set<unknown>>();
  const cluster = await createCluster((collection, { _id }) => {
    written.set(collection, (written.get(collection) ?? new Set()).add(_id));
  });
  for (let number = 0; number < ORDERS; number++)
    expect(await cluster.until(perform(cluster, orderOf(number)))).toEqual({ is: "refused", reason: "PET_NOT_FOUND" });
  const left = Object.fromEntries([...written].map(([collection, ids]) => [collection, ids.size]));
  await cluster.until(perform(cluster, { do: "place order", quantity: 1, mark: 2 }));
  return { cluster, left };
}

test("orders that are refused without a key leave nothing", async () => {
  expect(await refuse(() => order)).toMatchObject({ left: {} });
});

test("orders that are refused under keys leave what expires, and nothing at Inventory", async () => {
  const { cluster, left } = await refuse((number) => ({ ...order, key: `key-${number}` }));
  expect(left).toEqual({ orders: ORDERS, keys: ORDERS });
  const stored = async (days: number) => {
    cluster.advance(days * 24 * 3_600_000);
    await cluster.until(cluster.runWorkers("order"));
    return { orders: cluster.stored("orders"), keys: cluster.stored("keys") };
  };
  // With the one that was not refused.
  expect(await stored(2)).toEqual({ orders: ORDERS + 1, keys: 0 });
  expect(await stored(5)).toEqual({ orders: ORDERS + 1, keys: 0 });
  expect(await stored(2)).toEqual({ orders: 1, keys: 0 });
});
