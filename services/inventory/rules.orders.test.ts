import { describe, expect, test } from "vitest";
import type { Status } from "../records/record.ts";
import { fresh, held, listedAs, made, on, outcome, reserve, retired, sold, stocked, TAG } from "./fixtures/entries.ts";
import { sizeOf } from "./model.ts";
import {
  commit,
  highestOrder,
  MAX_OPEN_ORDERS,
  MAX_SETTLED,
  release,
  reservationsIn,
  reserve as reserveAs,
  retire,
  setListing,
  update,
} from "./rules.ts";

describe("Reserve", () => {
  test("takes the units from the stock: no oversell", () => {
    const doc = made(stocked, reserve(7, 4));
    expect(doc).toMatchObject({
      quantity: 6,
      reserved: 4,
      sold: 0,
      received: 10,
      openOrders: 1,
      reservations: ";7=4:Xq3_f0aB",
    });
    expect(doc.hasReservations).toBe(true);
  });
  test("of units that are held under the same tag is done, and moves nothing", () => {
    for (const units of [1, 2]) expect(on(held, reserve(7, units))).toEqual(outcome("OK"));
  });
  test.each([
    ["is held under another tag", made(stocked, reserveAs(7, 1, "other"))],
    ["was committed", made(stocked, reserve(7, 1), commit(7, 1))],
    ["was released", made(stocked, reserve(7, 1), release(7))],
    ["is at the low-water mark", { ...stocked, lowWaterMark: 7 }],
    ["is below the low-water mark", { ...stocked, lowWaterMark: 8 }],
    ["was committed, whatever the stock", sold],
    ["was released, whatever the listing", made(held, release(7), setListing(1, "sold"))],
  ])("of an order that %s is fenced", (_, doc) => {
    expect(on(doc, reserve(7, 1))).toEqual({ action: "keep", result: { outcome: "FENCED", entry: doc } });
  });
  test.each([undefined, retired])("without an entry is not found", (doc) => {
    expect(on(doc, reserve(7, 1))).toEqual(outcome("NOT_FOUND"));
  });
  test.each<Status>(["pending", "sold"])("of a pet listed as %s is refused", (listing) => {
    expect(on(listedAs(listing), reserve(7, 1))).toEqual(outcome("NOT_AVAILABLE"));
    expect(on(listedAs(listing), reserve(7, 99))).toEqual(outcome("NOT_AVAILABLE"));
  });
  test("without any stock is not available, with too little it is insufficient", () => {
    expect(on(held, reserve(8, 1))).toEqual(outcome("NOT_AVAILABLE"));
    expect(on(stocked, reserve(8, 11))).toEqual(outcome("INSUFFICIENT_STOCK"));
    expect(on(stocked, reserve(8, 10))).toMatchObject({ action: "put" });
  });
  test("beyond the most open orders is refused, and too little stock is the first reason", () => {
    const orders = Array.from({ length: MAX_OPEN_ORDERS }, (_, i) => reserve(i + 1, 1));
    const full = made(fresh, update(1n, { quantity: MAX_OPEN_ORDERS + 2 }, {}), ...orders);
    expect(full.openOrders).toBe(1_000);
    expect(on(full, reserve(2_000, 3))).toEqual(outcome("INSUFFICIENT_STOCK"));
    expect(on(full, reserve(2_000, 1))).toEqual(outcome("TOO_MANY_OPEN_ORDERS"));
    expect(on(full, reserve(1_000, 1))).toEqual(outcome("OK"));
    expect(on(made(full, commit(1, 1)), reserve(2_000, 1))).toMatchObject({ action: "put" });
  });
  test.each([
    ["NOT_FOUND", undefined, 1],
    ["NOT_AVAILABLE", listedAs("pending"), 1],
    ["NOT_AVAILABLE", held, 1],
    ["INSUFFICIENT_STOCK", stocked, 11],
  ] as const)("that is refused as %s leaves nothing behind", (name, doc, units) => {
    expect(on(doc, reserve(8, units))).toEqual(outcome(name));
    expect(made(doc, reserve(8, units))).toBe(doc);
  });
});

describe("what an entry knows", () => {
  test("is the highest order that holds units, has ended, or is at the low-water mark", () => {
    const known = [
      stocked,
      made(stocked, reserve(7, 1), reserve(5, 1)),
      made(stocked, reserve(7, 1), reserve(9, 1), release(9)),
      made(stocked, reserve(7, 1), reserve(9, 1), commit(9, 1)),
      { ...made(stocked, reserve(7, 1)), lowWaterMark: 12 },
    ];
    expect(known.map(highestOrder)).toEqual([0, 7, 9, 9, 12]);
  });
  test("are its reservations, with units and tag", () => {
    expect(reservationsIn(made(stocked, reserve(7, 2), reserveAs(5, 3, "x-_9")))).toEqual([
      { petId: 1, order: 5, units: 3, tag: "x-_9" },
      { petId: 1, order: 7, units: 2, tag: TAG },
    ]);
    expect(reservationsIn(fresh)).toEqual([]);
  });
  test("keep the trace that made them, if it is recorded, until they end", () => {
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const doc = made(stocked, reserveAs(7, 1, TAG, traceparent), reserve(8, 1), reserveAs(9, 1, TAG, traceparent));
    const tracesOf = (...rules: Parameters<typeof made>[1][]) =>
      reservationsIn(made(doc, ...rules)).map((one) => one.traceparent);
    expect(tracesOf()).toEqual([traceparent, undefined, traceparent]);
    expect(tracesOf(commit(7, 1))).toEqual([undefined, traceparent]);
    expect(made(doc, commit(7, 1)).traces).toBe(`;9=${traceparent}`);
    expect(made(doc, commit(7, 1), release(9)).traces).toBeUndefined();
    // Order 3 was ended by a process that does not know of traces.
    const stale = { ...doc, traces: `;3=${traceparent}${doc.traces}` };
    expect(made(stale, commit(7, 1), release(8), release(9)).traces).toBeUndefined();
  });
});

describe("Commit", () => {
  test("turns the reservation into a sale", () => {
    expect(sold).toMatchObject({ quantity: 0, reserved: 0, sold: 1, received: 1, openOrders: 0, status: "sold" });
    expect(sold).toMatchObject({ reservations: "", settled: ";7=C" });
    expect(sold.hasReservations).toBeUndefined();
  });
  test("leaves the version when callers see no change", () => {
    const doc = made(stocked, reserve(7, 1));
    expect(made(doc, commit(7, 1)).version).toBe(doc.version);
  });
  test("takes what is held, whatever it says", () => {
    expect(made(stocked, reserve(7, 2), commit(7, 5))).toMatchObject({ quantity: 8, reserved: 0, sold: 2 });
  });
  test.each([
    ["was committed", made(stocked, reserve(7, 1), commit(7, 1))],
    ["is at the low-water mark", { ...stocked, lowWaterMark: 7 }],
    ["is below the low-water mark", { ...stocked, lowWaterMark: 8 }],
    ["has no entry", undefined],
    ["has a retired entry", retired],
  ])("of an order that %s is done", (_, doc) => {
    expect(on(doc, commit(7, 1))).toEqual({ action: "keep", result: { outcome: "OK", entry: doc } });
  });

  describe("of an order that lost its reservation", () => {
    const lost = { "is not known": stocked, "was released": made(stocked, reserve(7, 3), release(7)) };
    test.each(Object.entries(lost))("takes the units once: it %s", (_, doc) => {
      const taken = on(doc, commit(7, 3));
      expect(taken).toMatchObject({ action: "put", result: { outcome: "OK", lostReservation: true } });
      const after = made(doc, commit(7, 3));
      expect(after).toMatchObject({ quantity: 7, reserved: 0, sold: 3, received: 10, openOrders: 0, settled: ";7=C" });
      expect(on(after, commit(7, 3))).toEqual({ action: "keep", result: { outcome: "OK", entry: after } });
      expect(on(after, reserve(7, 3))).toEqual(outcome("FENCED"));
    });
    test.each(Object.entries(lost))("is refused when there are too few, and changes nothing: it %s", (_, doc) => {
      const result = { outcome: "INSUFFICIENT_STOCK", entry: doc, lostReservation: true };
      expect(on(doc, commit(7, 11))).toEqual({ action: "keep", result });
      expect(made(doc, commit(7, 10)).quantity).toBe(0);
    });
  });
});

describe("Release", () => {
  test("gives the units back", () => {
    const doc = made(held, release(7));
    expect(doc).toMatchObject({
      quantity: 1,
      reserved: 0,
      sold: 0,
      openOrders: 0,
      status: "available",
      settled: ";7=X",
    });
    expect(on(doc, release(7))).toEqual(outcome("OK"));
  });
  test("never relists a pet", () => {
    const doc = made(held, setListing(1, "sold"), release(7));
    expect(doc).toMatchObject({ quantity: 1, listing: "sold", status: "sold" });
  });
  test.each([undefined, fresh, held, sold, made(held, release(7)), retired])(
    "of what is not held changes nothing (%#)",
    (doc) => {
      for (const order of doc === held ? [8] : [7, 8])
        expect(on(doc, release(order))).toEqual({ action: "keep", result: { outcome: "OK", entry: doc } });
    },
  );
});

describe("settled orders", () => {
  const many = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => i + from).flatMap((order) => [reserve(order, 1), release(order)]);
  const full = made(stocked, reserve(3, 1), ...many(100, MAX_SETTLED));

  test("are remembered up to a number", () => {
    expect(sizeOf(full.settled)).toBe(1_024);
    expect(full.lowWaterMark).toBe(0);
  });
  test("leave oldest first, and the low-water mark fences them", () => {
    const doc = made(full, ...many(5_000, 2));
    expect(sizeOf(doc.settled)).toBe(1_024);
    expect(doc.lowWaterMark).toBe(101);
    const restocked = made(doc, update(1n, { quantity: 5 }, {}));
    for (const late of [100, 101, 50]) expect(on(restocked, reserve(late, 1))).toEqual(outcome("FENCED"));
    expect(on(restocked, reserve(4_000, 1))).toMatchObject({ action: "put" });
    expect(on(restocked, release(100))).toEqual(outcome("OK"));
  });
  test("and open ones are no more fields to the store, however many there are", () => {
    const open = Array.from({ length: MAX_OPEN_ORDERS - 1 }, (_, i) => reserve(1_000_000 + i, 1));
    const hot = made(full, update(1n, { quantity: 5_000 }, {}), ...open);
    const valuesIn = (value: unknown): number =>
      typeof value === "object" ? Object.values(value ?? {}).reduce((all, inner) => all + valuesIn(inner), 1) : 1;
    expect(valuesIn(hot)).toBe(valuesIn(made(stocked, reserve(7, 1))));
    expect(JSON.stringify(hot).length).toBeLessThan(26 * 1024);
  });
  test("are ordered by number and not by their digits", () => {
    const doc = made(fresh, ...many(2 ** 32 + 90, MAX_SETTLED), ...many(2 ** 32 + 5, 1));
    expect(doc.lowWaterMark).toBe(2 ** 32 + 5);
  });
  test("below the low-water mark can still be held, and settled", () => {
    const doc = made(full, ...many(5_000, 2));
    expect(on(doc, reserve(3, 1))).toEqual(outcome("OK"));
    const settled = made(doc, commit(3, 1));
    expect(settled).toMatchObject({ sold: 1, reserved: 0, lowWaterMark: 101 });
    expect(on(settled, commit(3, 1))).toEqual(outcome("OK"));
  });
  test("the low-water mark never falls", () => {
    const doc = made(full, ...many(5_000, 2), commit(3, 1));
    expect(doc.lowWaterMark).toBe(101);
    expect(made(doc, retire(1)).lowWaterMark).toBe(101);
  });
});
