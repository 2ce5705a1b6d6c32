/** One service is restored from an older copy, beside the newer data of the others: what can heal heals. */

import { seededRandom } from "@petstore/runtime/clock";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { ServiceName } from "../../processes/names.ts";
import type { Operation } from "../workload/operations.ts";
import { type Outcome, perform } from "../workload/perform.ts";
import { createCluster } from "./cluster.ts";
import { noFaults } from "./fault-injector.ts";

// Deadlines are the simulation's own: real time must not end a call.
beforeAll(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterAll(() => void vi.useRealTimers());

type Unmarked = Operation extends infer O ? (O extends unknown ? Omit<O, "mark"> : never) : never;

/** Does what comes before the copy, then what is lost in the restored service. Ids are those of the records. */
async function restored(service: ServiceName, before: Unmarked[], lost: Unmarked[]) {
  const cluster = await createCluster();
  let mark = 0;
  const run = (operation: Unmarked): Promise<Outcome> =>
    cluster.until(perform(cluster, { ...operation, mark: ++mark } as Operation));
  const all = async (operations: Unmarked[]) => {
    for (const operation of operations)
      expect([operation, await run(operation)]).toMatchObject([operation, { is: "done" }]);
    await cluster.settle();
  };
  await all(before);
  const restore = cluster.backup(service);
  await all(lost);
  restore();
  await cluster.untilIdle();
  // Tags are random: those of other orders differ.
  cluster.injectFaults({ ...noFaults, random: seededRandom(1) });
  return {
    run,
    cluster,
    /** What is shown of a record once all workers have nothing to do. */
    async see(kind: "pet" | "order" | "inventory" | "category", id: number) {
      await cluster.settle();
      const outcome = await run({ do: `see ${kind}`, id, how: "alone" });
      return outcome.is === "done" ? outcome.shown?.view : outcome;
    },
  };
}

const [category, pet] = [
  { do: "create category" },
  { do: "create pet", category: 1 },
] as const satisfies readonly Unmarked[];
const list = (status: "available" | "pending" | "sold"): Unmarked => ({ do: "change pet", id: 1, status });
const stock = (quantity: number): Unmarked => ({ do: "stock", id: 1, quantity });
const order = (of = 1, quantity = 1): Unmarked => ({ do: "place order", pet: of, quantity });
const done = expect.objectContaining({ is: "done" });

describe("an older pet", () => {
  test.each([1, 2, 3])("is listed again, though Inventory knows later operations (%d)", async (operations) => {
    const lost = [list("pending"), list("sold"), list("available")].slice(0, operations);
    const { run, see } = await restored("pet", [category, pet, stock(3)], lost);
    expect(await run(list("pending"))).toEqual(done);
    expect(await see("pet", 1)).toMatchObject({ status: "pending" });
    expect(await see("inventory", 1)).toMatchObject({ status: "pending" });
    expect(await run(list("available"))).toEqual(done);
    expect(await see("inventory", 1)).toMatchObject({ status: "available" });
  });

  test("is deleted, though Inventory knows later operations", async () => {
    const { run, see } = await restored("pet", [category, pet], [list("pending"), list("sold")]);
    expect(await run({ do: "delete pet", id: 1 })).toEqual(done);
    expect(await see("inventory", 1)).toEqual({ is: "refused", reason: "INVENTORY_NOT_FOUND" });
  });
});

describe("an older inventory", () => {
  test("tells its statuses again, though Pet knows later ones", async () => {
    const lost = [stock(0), stock(2), stock(0), stock(2), list("pending"), list("available")];
    const { run, see } = await restored("inventory", [category, pet], lost);
    expect(await run(list("pending"))).toEqual(done);
    expect(await see("pet", 1)).toMatchObject({ status: "pending" });
    expect(await run(list("available"))).toEqual(done);
    expect(await run(stock(0))).toEqual(done);
    expect(await see("pet", 1)).toMatchObject({ status: "sold" });
  });

  test("tells its statuses above those that Pet knows without being asked", async () => {
    const lost = [stock(0), stock(2), stock(0), stock(2), stock(0), stock(2)];
    const { run, see } = await restored("inventory", [category, pet], lost);
    expect(await run(stock(0))).toEqual(done);
    expect(await see("pet", 1)).toMatchObject({ status: "sold" });
    expect(await run(stock(1))).toEqual(done);
    expect(await see("pet", 1)).toMatchObject({ status: "available" });
  });

  test("without the entry of a pet opens it without units", async () => {
    const { run, see } = await restored("inventory", [category], [pet]);
    expect(await run(list("pending"))).toEqual(done);
    expect(await see("inventory", 1)).toEqual({ quantity: 0, status: "sold" });
    expect(await see("pet", 1)).toMatchObject({ status: "sold" });
  });

  test("sells the units of an order whose reservation is lost, and only once", async () => {
    const { run, see } = await restored("inventory", [category, pet, stock(5)], [order(1, 2)]);
    expect(await see("inventory", 1)).toMatchObject({ quantity: 5 });
    for (let time = 0; time < 2; time++) expect(await run({ do: "complete order", id: 1 })).toEqual(done);
    expect(await see("inventory", 1)).toMatchObject({ quantity: 3 });
  });

  test("says that it can't sell what is not there", async () => {
    const { run } = await restored("inventory", [category, pet, stock(1)], [stock(2), order(1, 2)]);
    expect(await run({ do: "complete order", id: 1 })).toEqual({ is: "unknown" });
    expect(await run(stock(2))).toEqual(done);
    expect(await run({ do: "complete order", id: 1 })).toEqual(done);
  });

  test("takes nothing back for a cancelled order whose reservation is lost", async () => {
    const { run, see } = await restored("inventory", [category, pet, stock(5)], [order(1, 2)]);
    expect(await run({ do: "cancel order", id: 1 })).toEqual(done);
    expect(await see("inventory", 1)).toMatchObject({ quantity: 5 });
  });
});

describe("an older category", () => {
  const inUse = async (run: (operation: Unmarked) => Promise<Outcome>) =>
    expect(await run({ do: "delete category", id: 1 })).toEqual({ is: "refused", reason: "CATEGORY_IN_USE" });

  test.each([1, 3])("is deleted, though Pet knows %d later deletions", async (deletions) => {
    const cluster = await createCluster();
    let mark = 0;
    const run = (operation: Unmarked) => cluster.until(perform(cluster, { ...operation, mark: ++mark } as Operation));
    for (const operation of [category, pet]) await run(operation);
    const restore = cluster.backup("category");
    for (let deletion = 0; deletion < deletions; deletion++) await inUse(run);
    restore();
    await cluster.untilIdle();
    await inUse(run);
    expect(await run({ do: "delete pet", id: 1 })).toEqual(done);
    expect(await run({ do: "delete category", id: 1 })).toEqual(done);
  });

  test("takes pets in, though Pet has closed it for a deletion", async () => {
    const { run } = await restored("category", [category], [{ do: "delete category", id: 1 }]);
    expect(await run(pet)).toEqual(done);
    expect(await run({ do: "delete category", id: 1 })).toEqual({ is: "refused", reason: "CATEGORY_IN_USE" });
  });
});

describe("an older order", () => {
  test("gives no id again that an entry has known, though Inventory was restarted and another pet is ordered", async () => {
    const lost = [order(1), order(1), { do: "complete order", id: 1 }, { do: "cancel order", id: 2 }] as const;
    const { run, cluster } = await restored("order", [category, pet, pet, stock(5)], [...lost]);
    cluster.kill("inventory");
    await cluster.untilIdle();
    const placed = await run(order(2));
    expect(placed.is === "done" && placed.shown?.id).toBe(3);
  });

  test("whose id is given again does not take the units of the one that is lost", async () => {
    const { run, see } = await restored("order", [category, pet, stock(5)], [order(1, 2), order(1, 1)]);
    const placed = await run(order(1, 1));
    expect(placed).toEqual(done);
    // The lost orders' units are back, and those of the new one are held.
    expect(await see("inventory", 1)).toMatchObject({ quantity: 4 });
    expect(placed.is === "done" && placed.shown?.id).toBeGreaterThan(2);
  });

  test("whose id is given again for another pet does not keep the units of the one that is lost", async () => {
    const { run, see } = await restored("order", [category, pet, pet, stock(5)], [order(1, 2)]);
    expect(await run(order(2))).toEqual(done);
    expect(await see("inventory", 1)).toMatchObject({ quantity: 5 });
    expect(await see("inventory", 2)).toMatchObject({ quantity: 0 });
  });
});
