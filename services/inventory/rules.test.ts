import type { Decide } from "@petstore/store/port";
import { describe, expect, test } from "vitest";
import type { Status } from "../resource/record.ts";
import type { InventoryDoc } from "./model.ts";
import { sizeOf } from "./order-map.ts";
import {
  commit,
  MAX_OPEN_ORDERS,
  MAX_SETTLED,
  MAX_UNITS,
  markPublished,
  open,
  release,
  reserve,
  retire,
  setListing,
  statusOf,
  update,
} from "./rules.ts";

type Rule = Decide<InventoryDoc, unknown>;

/** What rules make of an entry, one after another, as the store would keep it. */
function made(start: InventoryDoc | undefined, ...rules: Rule[]): InventoryDoc {
  let doc = start;
  for (const rule of rules) {
    const rev = (doc?.rev ?? 0) + 1;
    const decision = rule(doc, rev);
    if (decision.action === "put") doc = { ...decision.doc, rev };
  }
  return doc as InventoryDoc;
}
/** Decides on an entry without storing anything. */
const on = <R>(doc: InventoryDoc | undefined, rule: Decide<InventoryDoc, R>) => rule(doc, (doc?.rev ?? 0) + 1);
const outcome = (name: string) => ({ action: "keep", result: expect.objectContaining({ outcome: name }) });
const reason = (name: string) => expect.objectContaining({ reason: name });

const fresh = made(undefined, open(1, "available"));
const stocked = made(fresh, update(1n, { quantity: 10 }, {}));
const held = made(fresh, reserve(7, 1));
const sold = made(held, commit(7));
const placeholder = made(undefined, release(1, 7));
const retired = made(fresh, retire(1));
const listedAs = (listing: Status) => made(stocked, setListing(1, listing));

describe("the status", () => {
  test.each<[number, number, Status, Status]>([
    [1, 0, "available", "available"],
    [1, 3, "available", "available"],
    [0, 1, "available", "pending"],
    [0, 0, "available", "sold"],
    [1, 0, "pending", "pending"],
    [0, 1, "pending", "pending"],
    [0, 0, "pending", "sold"],
    [1, 0, "sold", "sold"],
    [0, 1, "sold", "sold"],
    [0, 0, "sold", "sold"],
  ])("of %i units and %i open orders, listed as %s, is %s", (quantity, open, listing, status) => {
    expect(statusOf({ quantity, openOrders: open, listing })).toBe(status);
  });

  test("is put into the outbox, at the revision of the change, if and only if it changes", () => {
    const restocked = made(fresh, update(1n, { quantity: 5 }, {}));
    expect(restocked).toMatchObject({ rev: 2, statusRev: 1, status: "available" });
    expect(restocked.pending).toBeUndefined();
    expect(made(restocked, reserve(7, 5))).toMatchObject({ rev: 3, statusRev: 3, status: "pending", pending: true });
  });

  test("stays in the outbox until its own revision is published", () => {
    const again = made(held, commit(7));
    expect(on(again, markPublished(held.statusRev))).toMatchObject({ action: "keep" });
    expect(made(again, markPublished(again.statusRev)).pending).toBeUndefined();
    expect(on(undefined, markPublished(1))).toMatchObject({ action: "keep" });
  });

  test("that does not change is not published again, but stays in the outbox", () => {
    const restocked = made(sold, update(1n, { quantity: 1 }, {}));
    const { statusRev } = restocked;
    expect(made(restocked, update(1n, { quantity: 5 }, {}))).toMatchObject({ statusRev, pending: true });
  });

  test("that answers Pet is not published, and leaves one there that is", () => {
    expect([fresh.status, fresh.pending]).toEqual(["available", undefined]);
    const listed = made(fresh, setListing(1, "sold"));
    expect(listed).toMatchObject({ rev: 2, statusRev: 2, status: "sold" });
    expect(listed.pending).toBeUndefined();
    expect(made(held, setListing(1, "sold"))).toMatchObject({ status: "sold", pending: true });
  });
});

describe("Open", () => {
  test.each<[Status, number, Status]>([
    ["available", 1, "available"],
    ["pending", 1, "pending"],
    ["sold", 0, "sold"],
  ])("of a pet listed as %s starts with %i", (listing, quantity, status) => {
    const doc = made(undefined, open(1, listing));
    const units = { quantity, received: quantity, reserved: 0, sold: 0, openOrders: 0 };
    expect(doc).toMatchObject({ ...units, listing, status, version: 1, visible: true, state: "OPEN" });
  });
  test("answers with what it stored", () => {
    expect(on(placeholder, open(1, "pending"))).toMatchObject({
      result: { outcome: "OK", entry: { status: "pending", statusRev: placeholder.rev + 1 } },
    });
  });
  test("again changes nothing and answers with what is there now", () => {
    expect(on(held, open(1, "sold"))).toEqual({ action: "keep", result: { outcome: "OK", entry: held } });
  });
  test("of a retired entry is refused", () => {
    expect(on(retired, open(1, "available"))).toEqual(outcome("NOT_FOUND"));
  });
  test("keeps the fences of a placeholder", () => {
    const opened = made(placeholder, open(1, "available"));
    expect(opened).toMatchObject({ quantity: 1, version: 1, settled: ";7=X" });
    expect(on(opened, reserve(7, 1))).toEqual(outcome("FENCED"));
    expect(made(opened, reserve(8, 1)).reserved).toBe(1);
  });
});

describe("Reserve", () => {
  test("takes the units from the stock: no oversell", () => {
    const doc = made(stocked, reserve(7, 4));
    expect(doc).toMatchObject({ quantity: 6, reserved: 4, sold: 0, received: 10, openOrders: 1, reservations: ";7=4" });
    expect(doc.hasReservations).toBe(true);
  });
  test("replayed is the same, also when it was committed meanwhile", () => {
    expect(on(held, reserve(7, 1))).toEqual(outcome("OK"));
    expect(on(sold, reserve(7, 1))).toEqual(outcome("OK"));
  });
  test.each([undefined, placeholder, retired])("without an entry is not found", (doc) => {
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
    expect(on(made(full, commit(1)), reserve(2_000, 1))).toMatchObject({ action: "put" });
  });
  test("of an order that was released is fenced, whatever the stock", () => {
    expect(on(made(held, release(1, 7)), reserve(7, 1))).toEqual(outcome("FENCED"));
    expect(on(made(held, release(1, 8)), reserve(8, 1))).toEqual(outcome("FENCED"));
  });
  test("that was refused leaves nothing behind", () => {
    expect(made(stocked, reserve(7, 11))).toBe(stocked);
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
    expect(made(doc, commit(7)).version).toBe(doc.version);
  });
  test.each([undefined, placeholder, fresh, sold, retired])("with nothing held is done", (doc) => {
    expect(on(doc, commit(7))).toEqual(outcome("OK"));
  });
});

describe("Release", () => {
  test("gives the units back", () => {
    const doc = made(held, release(1, 7));
    expect(doc).toMatchObject({
      quantity: 1,
      reserved: 0,
      sold: 0,
      openOrders: 0,
      status: "available",
      settled: ";7=X",
    });
    expect(on(doc, release(1, 7))).toEqual(outcome("OK"));
  });
  test("never relists a pet", () => {
    const doc = made(held, setListing(1, "sold"), release(1, 7));
    expect(doc).toMatchObject({ quantity: 1, listing: "sold", status: "sold" });
  });
  test("of what is not held is a fence, and callers see nothing of it", () => {
    const doc = made(held, release(1, 8));
    expect(doc).toMatchObject({ quantity: 0, reserved: 1, settled: ";8=X", version: held.version });
  });
  test("before the entry exists leaves a placeholder, which is no entry", () => {
    expect(placeholder).toMatchObject({ _id: 1, state: "PLACEHOLDER", settled: ";7=X", received: 0 });
    expect(placeholder.visible).toBeUndefined();
    expect(placeholder.pending).toBeUndefined();
    expect(made(placeholder, release(1, 8)).settled).toBe(";7=X;8=X");
    for (const rule of [setListing(1, "sold"), retire(1)]) expect(on(placeholder, rule)).toEqual(outcome("NOT_FOUND"));
    expect(() => on(placeholder, update(1n, { quantity: 1 }, {}))).toThrow(reason("INVENTORY_NOT_FOUND"));
  });
  test("of a committed order or a retired entry is done", () => {
    expect(on(sold, release(1, 7))).toEqual(outcome("OK"));
    expect(on(retired, release(1, 7))).toEqual(outcome("OK"));
  });
});

describe("settled orders", () => {
  const many = (from: number, count: number) => Array.from({ length: count }, (_, i) => release(1, from + i));
  const full = made(made(fresh, reserve(3, 1)), ...many(100, MAX_SETTLED));

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
    expect(on(restocked, release(1, 100))).toEqual(outcome("OK"));
  });
  test("and open ones are no more fields to the store, however many there are", () => {
    const open = Array.from({ length: MAX_OPEN_ORDERS - 1 }, (_, i) => reserve(1_000_000 + i, 1));
    const hot = made(full, update(1n, { quantity: 5_000 }, {}), ...open);
    const valuesIn = (value: unknown): number =>
      typeof value === "object" ? Object.values(value ?? {}).reduce((all, inner) => all + valuesIn(inner), 1) : 1;
    expect(valuesIn(hot)).toBe(valuesIn(held));
    expect(JSON.stringify(hot).length).toBeLessThan(21 * 1024);
  });
  test("are ordered by number and not by their digits", () => {
    const doc = made(fresh, ...many(2 ** 32 + 90, MAX_SETTLED), release(1, 2 ** 32 + 5));
    expect(doc.lowWaterMark).toBe(2 ** 32 + 5);
  });
  test("below the low-water mark can still be held, and settled", () => {
    const doc = made(full, ...many(5_000, 2));
    expect(on(doc, reserve(3, 1))).toEqual(outcome("OK"));
    const settled = made(doc, commit(3));
    expect(settled).toMatchObject({ sold: 1, reserved: 0, lowWaterMark: 101 });
    expect(on(settled, commit(3))).toEqual(outcome("OK"));
  });
  test("the low-water mark never falls", () => {
    const doc = made(full, ...many(5_000, 2), commit(3), release(1, 200));
    expect(doc.lowWaterMark).toBe(101);
    expect(made(doc, retire(1)).lowWaterMark).toBe(101);
  });
});

describe("SetQuantity", () => {
  test("counts what came in and what was written off", () => {
    expect(stocked).toMatchObject({ quantity: 10, received: 10, version: 2 });
    const doc = made(stocked, reserve(7, 4), update(1n, { quantity: 1 }, {}));
    expect(doc).toMatchObject({ quantity: 1, reserved: 4, received: 5 });
  });
  test("above 0 relists a pet listed as sold, also when the quantity is the same", () => {
    expect(made(listedAs("sold"), update(1n, { quantity: 10 }, {}))).toMatchObject({
      ...{ listing: "available", status: "available", version: 4 },
    });
    expect(made(listedAs("sold"), update(1n, { quantity: 0 }, {})).listing).toBe("sold");
    expect(made(listedAs("pending"), update(1n, { quantity: 5 }, {})).listing).toBe("pending");
  });
  test("that changes nothing leaves the version alone", () => {
    for (const quantity of [10, undefined])
      expect(on(stocked, update(1n, { quantity }, {}))).toEqual({ action: "keep", result: { entry: stocked } });
    expect(on(listedAs("sold"), update(1n, { quantity: undefined }, {}))).toMatchObject({ action: "keep" });
  });
  test("needs an entry, then the revision it was made for, then room", () => {
    for (const doc of [undefined, placeholder, retired])
      expect(() => on(doc, update(1n, { quantity: MAX_UNITS }, { etag: '"9"' }))).toThrow(
        reason("INVENTORY_NOT_FOUND"),
      );
    expect(() => on(held, update(1n, { quantity: MAX_UNITS }, { etag: '"9"' }))).toThrow(reason("ETAG_MISMATCH"));
    expect(() => on(held, update(1n, { quantity: undefined }, { etag: '"9"' }))).toThrow(reason("ETAG_MISMATCH"));
    expect(() => on(held, update(1n, { quantity: MAX_UNITS }, { etag: `"${held.version}"` }))).toThrow(
      expect.objectContaining({ reason: "VALIDATION_FAILED", path: "inventory.quantity" }),
    );
    expect(made(held, update(1n, { quantity: MAX_UNITS - 1 }, {})).quantity).toBe(MAX_UNITS - 1);
    expect(made(fresh, update(1n, { quantity: MAX_UNITS }, {})).quantity).toBe(MAX_UNITS);
  });
});

describe("SetListing", () => {
  test("changes the listing, never the quantity, and answers with the status that follows", () => {
    const decision = on(stocked, setListing(1, "pending"));
    expect(decision).toMatchObject({
      doc: { listing: "pending", quantity: 10, received: 10 },
      result: { outcome: "OK", entry: { status: "pending", statusRev: stocked.rev + 1 } },
    });
  });
  test("available needs stock: units in open orders do not count", () => {
    const doc = made(held, setListing(1, "available"));
    expect(on(held, setListing(1, "available"))).toMatchObject({ result: { outcome: "INSUFFICIENT_STOCK" } });
    expect(doc).toMatchObject({ listing: "available", version: held.version, statusRev: held.statusRev });
  });
  test("again is answered alike, though the stock has changed", () => {
    const refused = made(held, setListing(1, "available"), release(1, 7));
    expect(on(refused, setListing(1, "available"))).toEqual(outcome("INSUFFICIENT_STOCK"));
    const done = made(stocked, setListing(1, "available"), update(1n, { quantity: 0 }, {}));
    expect(on(done, setListing(1, "available"))).toEqual({ action: "keep", result: { outcome: "OK", entry: done } });
  });
  test("that was overtaken by a later operation changes nothing (race)", () => {
    const doc = made(stocked, setListing(2, "sold"));
    expect(on(doc, setListing(1, "available"))).toEqual(outcome("STALE"));
  });
  test("without an entry is not found", () => {
    for (const doc of [undefined, retired]) expect(on(doc, setListing(9, "sold"))).toEqual(outcome("NOT_FOUND"));
  });
});

describe("Retire", () => {
  test("takes the entry away for good, and the ledger stays", () => {
    const doc = made(sold, retire(1));
    expect(doc).toMatchObject({ state: "RETIRED", sold: 1, received: 1, settled: "" });
    for (const mark of ["visible", "pending", "hasReservations"] as const) expect(doc[mark]).toBeUndefined();
    for (const op of [1, 2]) expect(on(doc, retire(op))).toEqual(outcome("OK"));
  });
  test("waits for open orders, and the refusal stays the answer", () => {
    expect(on(held, retire(1))).toMatchObject({ action: "put", result: { outcome: "OPEN_ORDERS" } });
    const refused = made(held, retire(1), release(1, 7));
    expect(refused).toMatchObject({ state: "OPEN", visible: true });
    expect(on(refused, retire(1))).toEqual(outcome("OPEN_ORDERS"));
    expect(made(refused, retire(2)).state).toBe("RETIRED");
  });
  test("that was overtaken by a later operation does nothing (race)", () => {
    expect(on(made(fresh, setListing(2, "sold")), retire(1))).toEqual(outcome("STALE"));
  });
  test("without an entry is not found", () => {
    expect(on(undefined, retire(1))).toEqual(outcome("NOT_FOUND"));
  });
});
