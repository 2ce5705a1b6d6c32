import fc from "fast-check";
import { expect, test } from "vitest";
import { HELD_MAP, highest, lastIn, NO_ORDERS, ordersIn, sizeOf, valueFor, withOrder, withoutOrder } from "./model.ts";

// Numbers of which one is the beginning or the end of another, and numbers as high as an id can be.
const order = fc.oneof(fc.integer({ min: 1, max: 120 }), fc.constantFrom(2 ** 53 - 1, 2 ** 53 - 2));
const units = fc.integer({ min: 1, max: 2 ** 31 - 1 });
const tag = fc.stringMatching(/^[\w-]{1,8}$/);
const change = fc.record({ order, held: fc.tuple(units, tag).map((parts) => parts.join(":")) });

test("a map holds what a Map would, in ascending order", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), fc.nat({ max: 30 }), (changes, most) => {
      const model = new Map<number, string>();
      let map = NO_ORDERS;
      for (const { order, held } of changes) {
        // An order that is in the map is removed, and one that is not is added.
        map = model.has(order) ? withoutOrder(map, order) : withOrder(map, order, held);
        if (!model.delete(order)) model.set(order, held);
        expect(withoutOrder(map, 999)).toBe(map);
      }
      const sorted = [...model.keys()].sort((a, b) => a - b);
      expect(map).toMatch(HELD_MAP);
      expect(ordersIn(map)).toEqual(sorted);
      expect(sizeOf(map)).toBe(model.size);
      expect(lastIn(map)).toBe(sorted.at(-1) ?? 0);
      for (let order = 1; order <= 120; order++) expect(valueFor(map, order)).toBe(model.get(order));
      const dropped = sorted.slice(0, Math.max(0, sorted.length - most));
      const kept = highest(map, most);
      expect([ordersIn(kept.map), kept.dropped]).toEqual([sorted.slice(dropped.length), dropped.at(-1)]);
    }),
  );
});
