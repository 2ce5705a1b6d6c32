/** Every peer gets the same pets, whatever it stores them as. */

import { seededRandom } from "@petstore/runtime/clock";
import { describe, expect, test } from "vitest";
import type { InventoryDoc } from "../../services/inventory/model.ts";
import type { OrderDoc } from "../../services/order/model.ts";
import type { PetDoc } from "../../services/pet/model.ts";
import { documentsOf } from "./documents.ts";
import { CATEGORIES, petOf } from "./pets.ts";
import { shuffled } from "./random.ts";

const ids = Array.from({ length: 1000 }, (_, i) => i + 1);
const last = <T>(id: number, collection: string, isOrdered?: boolean) =>
  documentsOf(id, isOrdered)
    .find((written) => written.collection === collection)
    ?.states.at(-1) as T | undefined;

describe("chance", () => {
  test("is the same for the same seed, and another for another", () => {
    const draw = (seed: number) => Array.from({ length: 5 }, seededRandom(seed));
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
    expect(draw(7).every((number) => number >= 0 && number < 1)).toBe(true);
  });
  test("shuffles without losing anything", () => {
    expect(shuffled(ids, seededRandom(1))).not.toEqual(ids);
    expect(shuffled(ids, seededRandom(1)).sort((a, b) => a - b)).toEqual(ids);
  });
});

describe("pets", () => {
  test("are of every status", () => {
    const statuses = Object.groupBy(ids, (id) => petOf(id).status);
    expect(statuses.available?.length).toBeGreaterThan(700);
    expect(statuses.pending?.length).toBeGreaterThan(50);
    expect(statuses.sold?.length).toBeGreaterThan(10);
  });
  test("are the same in the petstore's documents", () => {
    for (const id of ids) {
      const { name, categoryId, status, quantity } = petOf(id);
      const facts = { name };
      expect(last<PetDoc>(id, "pets")).toMatchObject({
        _id: id,
        state: "ACTIVE",
        visible: true,
        facts,
        categoryId,
        status,
      });
      expect(last<PetDoc>(id, "pets")).not.toHaveProperty("pending", true);
      expect(last<InventoryDoc>(id, "inventory")).toMatchObject({ _id: id, state: "OPEN", quantity, status });
      expect(last<InventoryDoc>(id, "inventory")).not.toHaveProperty("pending", true);
    }
  });
  test("bring each category once", () => {
    const categories = documentsOf(CATEGORIES)
      .concat(documentsOf(CATEGORIES + 1))
      .filter(({ service }) => service === "category");
    expect(categories.map(({ states }) => states.at(-1)?._id)).toEqual([CATEGORIES]);
  });
  test("for sale have an order that took a unit, when orders are asked for", () => {
    const forSale = ids.find((id) => petOf(id).status === "available") ?? 0;
    const { quantity } = petOf(forSale);
    expect(last<OrderDoc>(forSale, "orders", true)).toMatchObject({ _id: forSale, state: "COMPLETE", visible: true });
    expect(last<InventoryDoc>(forSale, "inventory", true)).toMatchObject({
      quantity: quantity - 1,
      sold: 1,
      received: quantity,
    });
    const onHold = ids.find((id) => petOf(id).status === "pending") ?? 0;
    expect(last<OrderDoc>(onHold, "orders", true)).toBeUndefined();
  });
});
