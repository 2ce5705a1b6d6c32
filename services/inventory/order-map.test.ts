import fc from "fast-check";
import { expect, test } from "vitest";
import { highest, NO_ORDERS, ordersIn, sizeOf, UNITS_MAP, valueFor, withOrder, withoutOrder } from "./order-map.ts";

// Numbers of which one is the beginning or the end of another, and numbers as high as an id can be.
const order = fc.oneof(fc.integer({ min: 1, max: 120 }), fc.constantFrom(2 ** 53 - 1, 2 ** 53 - 2));
const change = fc.record({ order, units: fc.integer({ min: 1, max: 2 ** 31 - 1 }) });

test("a map holds what a Map would, in ascending order", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), fc.nat({ max: 30 }), (changes, most) => {
      const model = new Map<number, number>();
      let map = NO_ORDERS;
      for (const { order, units } of changes) {
        // An order that is in the map is removed, and one that is not is added.
        map = model.has(order) ? withoutOrder(map, order) : withOrder(map, order, units);
        if (!model.delete(order)) model.set(order, units);
        expect(withoutOrder(map, 999)).toBe(map);
      }
      const sorted = [...model.keys()].sort((a, b) => a - b);
      expect(map).toMatch(UNITS_MAP);
      expect(ordersIn(map)).toEqual(sorted);
      expect(sizeOf(map)).toBe(model.size);
      for (let order = 1; order <= 120; order++) expect(valueFor(map, order)).toBe(model.get(order)?.toString());
      const dropped = sorted.slice(0, Math.max(0, sorted.length - most));
      const kept = highest(map, most);
      expect([ordersIn(kept.map), kept.dropped]).toEqual([sorted.slice(dropped.length), dropped.at(-1)]);
    }),
  );
});
