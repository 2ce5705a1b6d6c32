import type { PetStatus } from "@petstore/client";
import { seededRandom } from "@petstore/runtime/seeded-random";
import { describe, expect, test } from "vitest";
import { type Change, type Known, nextChange, type Stock, withOrders, withStock } from "./next.ts";

const stock = (id: number, quantity: number, status: PetStatus): Stock => ({
  pet: { id, name: `pet ${id}` },
  quantity,
  status,
  etag: `"${id}"`,
});
const shop = (...stocks: Stock[]): Known => ({ stocks: new Map(stocks.map((one) => [one.pet.id, one])), open: [] });
const draws = (known: Known, count = 200) => {
  const random = seededRandom(7);
  return Array.from({ length: count }, () => nextChange(known, random));
};

describe("the next change", () => {
  test("is an order of no more than there is, while nothing is open", () => {
    const changes = draws(shop(stock(1, 2, "available"), stock(2, 0, "pending")));
    expect(new Set(changes.map((change) => change?.kind))).toEqual(new Set(["order"]));
    for (const change of changes)
      expect(change).toMatchObject({ pet: { id: 1 }, quantity: expect.toSatisfy((n) => n <= 2) });
  });

  test("ends orders when many are open, and completes most of them", () => {
    const open = Array.from({ length: 40 }, (_, id) => ({ id, pet: { id: 1, name: "pet 1" } }));
    const kinds = draws({ ...shop(stock(1, 5, "available")), open }).map((change) => change?.kind);
    expect(kinds).not.toContain("order");
    const completed = kinds.filter((kind) => kind === "complete").length;
    expect(completed).toBeGreaterThan(100);
    expect(kinds.filter((kind) => kind === "cancel")).toHaveLength(200 - completed);
    expect(completed).toBeLessThan(200);
  });

  test("brings in again what is sold out, if it is as it was seen", () => {
    const changes = draws(shop(stock(1, 0, "sold")));
    for (const change of changes) expect(change).toMatchObject({ kind: "refill", pet: { id: 1 }, etag: '"1"' });
    expect(changes.every((change) => change?.kind === "refill" && change.quantity > 0)).toBe(true);
  });

  test("is none where all is on hold, or nothing is there", () => {
    expect(nextChange(shop(stock(1, 1, "pending")), seededRandom(7))).toBeUndefined();
    expect(nextChange(shop(), seededRandom(7))).toBeUndefined();
  });

  test("is the same for the same seed", () => {
    const known = shop(stock(1, 5, "available"), stock(2, 0, "sold"));
    expect(draws(known)).toEqual(draws(known));
  });
});

test("what is known follows what was done and seen", () => {
  const known = shop(stock(1, 5, "available"), stock(2, 0, "sold"));
  const order = { id: 9, pet: { id: 1, name: "pet 1" } };
  const placed = withOrders(known, { placed: order });
  expect(placed.open).toEqual([order]);
  expect(withOrders(placed, { ended: order })).toEqual(known);
  expect(withStock(known, order.pet, stock(1, 4, "available")).stocks.get(1)?.quantity).toBe(4);
  expect([...withStock(known, order.pet, undefined).stocks.keys()]).toEqual([2]);
});

/** A shop by the rules of the petstore, as far as they matter here. */
function apply(known: Known, change: Change, id: number): Known {
  const { pet } = change;
  const before = known.stocks.get(pet.id) as Stock;
  const others = (without?: number) => known.open.some((order) => order.id !== without && order.pet.id === pet.id);
  const seen = (quantity: number, isOrdered: boolean) =>
    ({ ...before, quantity, status: quantity > 0 ? "available" : isOrdered ? "pending" : "sold" }) satisfies Stock;
  switch (change.kind) {
    case "order":
      return withStock(withOrders(known, { placed: { id, pet } }), pet, seen(before.quantity - change.quantity, true));
    case "complete":
      return withStock(withOrders(known, { ended: change.order }), pet, seen(before.quantity, others(change.order.id)));
    case "cancel":
      return withStock(withOrders(known, { ended: change.order }), pet, seen(before.quantity + 1, true));
    case "refill":
      return withStock(known, pet, seen(change.quantity, false));
  }
}

test("in the long run as many orders come as go, and most pets stay for sale", () => {
  const random = seededRandom(7);
  let known = shop(...Array.from({ length: 100 }, (_, id) => stock(id, 1 + (id % 5), "available")));
  const kinds = { order: 0, complete: 0, cancel: 0, refill: 0 };
  for (let id = 0; id < 5_000; id++) {
    const change = nextChange(known, random) as Change;
    kinds[change.kind]++;
    known = apply(known, change, id);
    expect(known.open.length).toBeLessThanOrEqual(20);
  }
  expect(kinds.order - kinds.complete - kinds.cancel).toBe(known.open.length);
  expect(kinds.complete).toBeGreaterThan(2 * kinds.cancel);
  const forSale = [...known.stocks.values()].filter(({ status }) => status === "available");
  expect(forSale.length).toBeGreaterThan(60);
});
