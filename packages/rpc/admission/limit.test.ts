import type { DescService } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CategoryService } from "../../../proto/gen/petstore/category/v1/category_service_pb.ts";
import { InventoryService } from "../../../proto/gen/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "../../../proto/gen/petstore/order/v1/order_service_pb.ts";
import { PetService } from "../../../proto/gen/petstore/pet/v1/pet_service_pb.ts";
import {
  FLOOR_MS,
  MAX_LIMIT,
  MIN_LIMIT,
  nextBaseline,
  nextLimit,
  priorities,
  priorityOf,
  START_LIMIT,
  slowdown,
  TOLERANCE,
} from "./limit.ts";

const limits = fc.double({ min: MIN_LIMIT, max: MAX_LIMIT, noNaN: true });
const slowdowns = fc.double({ min: 0.1, max: 10, noNaN: true });
const full = (limit: number, slowdown: number) => nextLimit(limit, { slowdown, peak: limit });

describe("the limit", () => {
  test("stays within its bounds, whatever is measured", () => {
    fc.assert(
      fc.property(limits, slowdowns, fc.nat(5_000), (limit, slowdown, peak) => {
        const next = nextLimit(limit, { slowdown, peak });
        expect(next).toBeGreaterThanOrEqual(MIN_LIMIT);
        expect(next).toBeLessThanOrEqual(MAX_LIMIT);
      }),
    );
  });

  test("the slower calls become, the less is let in", () => {
    fc.assert(
      fc.property(limits, slowdowns, slowdowns, (limit, a, b) => {
        const [less, more] = [Math.min(a, b), Math.max(a, b)];
        expect(full(limit, more)).toBeLessThanOrEqual(full(limit, less));
      }),
    );
  });

  test("grows where calls are not slow and it is felt, and where it is not felt no further than where it began", () => {
    fc.assert(
      fc.property(limits, fc.double({ min: 0.1, max: TOLERANCE, noNaN: true }), (limit, slowdown) => {
        expect(full(limit, slowdown)).toBeGreaterThan(Math.min(limit, MAX_LIMIT - 1));
        const unfelt = nextLimit(limit, { slowdown, peak: limit / 2 - 1 });
        if (limit >= START_LIMIT) expect(unfelt).toBe(limit);
        else expect(unfelt).toBe(Math.min(START_LIMIT, full(limit, slowdown)));
      }),
    );
  });

  test("falls from the most to the least in 40 windows, and grows tenfold in 100", () => {
    let limit = MAX_LIMIT;
    for (let window = 0; window < 40; window++) limit = full(limit, 10);
    expect(limit).toBe(MIN_LIMIT);
    for (let window = 0; window < 100; window++) limit = full(limit, 1);
    expect(limit).toBeGreaterThan(10 * MIN_LIMIT);
  });
});

describe("what calls take alone", () => {
  const after = (all: readonly number[]) => all.reduce((baseline, ms, i) => nextBaseline(baseline, i, ms), 0);

  test("is their median, whatever the first ones took", () => {
    const usual = Array.from({ length: 400 }, (_, i) => 15 + (i % 11));
    for (const first of [1, 20, 1_000]) {
      const found = after([first, first, ...usual]);
      expect(found).toBeGreaterThan(18);
      expect(found).toBeLessThan(22);
    }
  });

  test("is hardly changed by one that was held up", () => {
    const usual = Array.from({ length: 100 }, () => 20);
    expect(after([...usual, 60_000])).toBeLessThan(1.05 * after(usual));
  });

  test("follows where all become slower", () => {
    expect(after([...Array(100).fill(20), ...Array(200).fill(100)])).toBeGreaterThan(90);
  });

  test("can be as little as no time at all", () => {
    const found = after([0, 0, 0, 10, 10, 10, ...Array(200).fill(10)]);
    expect(found).toBeGreaterThan(9);
  });
});

test("a few milliseconds are no sign of anything", () => {
  expect(slowdown(FLOOR_MS, 0)).toBe(1);
  expect(slowdown(2 * FLOOR_MS, 1)).toBe(2);
  expect(slowdown(80, 20)).toBe(4);
  expect(slowdown(60_000, 20)).toBe(10);
});

const namesOf = (...services: DescService[]) =>
  Object.fromEntries(
    priorities.map((priority) => [
      priority,
      services.flatMap(({ methods }) => methods.filter((one) => priorityOf(one) === priority).map(({ name }) => name)),
    ]),
  );

test("the contract says what goes first", () => {
  expect(namesOf(OrderService, PetService, CategoryService, InventoryService)).toEqual({
    finish: [
      ...["UpdateOrder", "DeleteOrder", "UpdatePet", "DeletePet"],
      ...["UpdateCategory", "DeleteCategory", "UpdateInventory"],
    ],
    create: ["CreateOrder", "CreatePet", "CreateCategory"],
    read: [
      ...["GetOrder", "BatchGetOrders", "GetPet", "BatchGetPets"],
      ...["GetCategory", "BatchGetCategories", "GetInventory", "BatchGetInventory"],
    ],
    list: [
      ...["ListOrders", "WatchOrders", "ListPets", "WatchPets"],
      ...["ListCategories", "WatchCategories", "ListInventory", "WatchInventory"],
    ],
  });
});
