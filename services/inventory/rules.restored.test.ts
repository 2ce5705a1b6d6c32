import { describe, expect, test } from "vitest";
import { held, made, on, outcome, reserve, retired, stocked } from "./fixtures/entries.ts";
import { open, overtakeStatus, retire, setListing } from "./rules.ts";

describe("an entry and a pet of which one was restored from an older copy", () => {
  test("an operation with the number of another one is STALE, so that the pet gives it a higher number", () => {
    const listed = made(stocked, setListing(1, "pending"));
    expect(on(listed, setListing(1, "pending"))).toEqual(outcome("OK"));
    for (const rule of [setListing(1, "sold"), retire(1)]) expect(on(listed, rule)).toEqual(outcome("STALE"));
    expect(on(made(held, retire(1)), setListing(1, "sold"))).toEqual(outcome("STALE"));
  });
  test("SetListing numbers the status above the one that the pet knows", () => {
    for (const listing of ["pending", "available"] as const) {
      const doc = made(stocked, setListing(1, listing, 40));
      expect(doc).toMatchObject({ status: listing, statusRev: 41 });
      expect(doc.pending).toBeUndefined();
    }
    expect(made(stocked, setListing(1, "pending", 2))).toMatchObject({ statusRev: 3 });
    expect(made(stocked, setListing(1, "available", stocked.statusRev)).statusRev).toBe(stocked.statusRev);
  });
  test("a status is numbered above the one before, though revisions began anew", () => {
    const ahead = made(stocked, setListing(1, "available", 40));
    expect(made(ahead, reserve(7, 10))).toMatchObject({ status: "pending", statusRev: 42, pending: true });
  });
  test("a status that the pet has overtaken is numbered above that, and published", () => {
    const { statusRev } = stocked;
    for (const kept of [
      { status: "available", statusRev: statusRev + 8 },
      { status: "sold", statusRev },
    ] as const)
      expect(on(stocked, overtakeStatus(kept))).toMatchObject({
        ...{ action: "put", doc: { ...stocked, statusRev: kept.statusRev + 1, pending: true } },
        result: { outcome: "OK", entry: { pending: true } },
      });
  });
  test("one that it has not is left alone", () => {
    const { statusRev, status } = stocked;
    for (const kept of [
      { status, statusRev },
      { status: "sold", statusRev: statusRev - 1 },
    ] as const)
      expect(on(stocked, overtakeStatus(kept))).toMatchObject({ action: "keep" });
    for (const doc of [undefined, retired])
      expect(on(doc, overtakeStatus({ status: "sold", statusRev: 99 }))).toMatchObject({ action: "keep" });
  });
  test("a lost entry begins anew without units, with a later status than the pet knows", () => {
    for (const listing of ["available", "pending", "sold"] as const) {
      const doc = made(undefined, open(1, listing, 40));
      expect(doc).toMatchObject({ quantity: 0, received: 0, listing, status: "sold", statusRev: 41 });
    }
  });
});
