import { describe, expect, test } from "vitest";
import type { Status } from "../records/record.ts";
import {
  fresh,
  held,
  listedAs,
  made,
  on,
  outcome,
  reason,
  reserve,
  retired,
  sold,
  stocked,
} from "./fixtures/entries.ts";
import {
  commit,
  MAX_UNITS,
  markPublished,
  onceCleared,
  open,
  release,
  retire,
  setListing,
  statusOf,
  update,
} from "./rules.ts";

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
    const again = made(held, commit(7, 1));
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
    expect(on(undefined, open(1, "pending"))).toMatchObject({
      result: { outcome: "OK", entry: { status: "pending", statusRev: 1 } },
    });
  });
  test("again changes nothing and answers with what is there now", () => {
    expect(on(held, open(1, "sold"))).toEqual({ action: "keep", result: { outcome: "OK", entry: held } });
  });
  test("of a retired entry is refused", () => {
    expect(on(retired, open(1, "available"))).toEqual(outcome("NOT_FOUND"));
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
    for (const doc of [undefined, retired])
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
    const refused = made(held, setListing(1, "available"), release(7));
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
    const refused = made(held, retire(1), release(7));
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

describe("the outbox", () => {
  test("is cleared of the published status by what is stored next, and of no newer one", () => {
    expect(held).toMatchObject({ pending: true });
    const listed = (publishedRev: number | undefined) =>
      made(held, onceCleared(setListing(1, "pending"), publishedRev)).pending;
    expect([held.statusRev, held.statusRev - 1, undefined].map(listed)).toEqual([undefined, true, true]);
  });
});
