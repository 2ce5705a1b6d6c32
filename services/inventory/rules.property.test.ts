import type { Decide } from "@petstore/store/port";
import fc from "fast-check";
import { expect, test } from "vitest";
import { DomainError } from "../records/errors.ts";
import type { Status } from "../records/record.ts";
import { INVENTORY, type InventoryDoc, ordersIn, sizeOf, valueFor } from "./model.ts";
import {
  commit,
  MAX_UNITS,
  markPublished,
  type OperationResult,
  open,
  release,
  reservationsIn,
  reserve,
  retire,
  setListing,
  statusOf,
  update,
} from "./rules.ts";

interface Operation {
  readonly name: string;
  readonly rule: Decide<InventoryDoc, unknown>;
}

// Few orders and units, so that operations meet.
const order = fc.integer({ min: 1, max: 4 });
const taken = fc.integer({ min: 1, max: 3 });
const tag = fc.constantFrom("a", "b");
const op = fc.integer({ min: 1, max: 6 });
const listing = fc.constantFrom<Status>("available", "pending", "sold");
const units = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constantFrom(MAX_UNITS - 1, MAX_UNITS));
const operation: fc.Arbitrary<Operation> = fc.oneof(
  listing.map((l) => ({ name: `open ${l}`, rule: open(1, l) })),
  fc.tuple(order, taken, tag).map(([o, q, t]) => ({ name: `reserve ${o} ${q} ${t}`, rule: reserve(o, q, t) })),
  fc.tuple(order, taken).map(([o, q]) => ({ name: `commit ${o} ${q}`, rule: commit(o, q) })),
  order.map((o) => ({ name: `release ${o}`, rule: release(o) })),
  units.map((n) => ({ name: `set ${n}`, rule: update(1n, { quantity: n }, {}) })),
  fc.tuple(op, listing).map(([n, l]) => ({ name: `list ${n} ${l}`, rule: setListing(n, l) })),
  { weight: 1, arbitrary: op.map((n) => ({ name: `retire ${n}`, rule: retire(n) })) },
  fc.integer({ min: 1, max: 9 }).map((rev) => ({ name: `published ${rev}`, rule: markPublished(rev) })),
);

const sum = (doc: InventoryDoc) => reservationsIn(doc).reduce((total, { units }) => total + units, 0);

function checkEntry(doc: InventoryDoc): void {
  expect(INVENTORY.document?.(doc)).toBeUndefined();
  const { quantity, reserved, sold, received } = doc;
  expect(received).toBe(quantity + reserved + sold);
  expect(reserved).toBe(sum(doc));
  expect(Math.min(quantity, reserved, sold, received)).toBeGreaterThanOrEqual(0);
  expect(quantity + reserved).toBeLessThanOrEqual(MAX_UNITS);
  expect(doc.openOrders).toBe(sizeOf(doc.reservations));
  expect(doc.hasReservations).toBe(doc.openOrders > 0 ? true : undefined);
  expect(doc.visible).toBe(doc.state === "OPEN" ? true : undefined);
  expect(doc.status).toBe(statusOf(doc));
  for (const settled of ordersIn(doc.settled)) expect(valueFor(doc.reservations, settled)).toBeUndefined();
}

/** Whose answer Pet asks for until it has stored it. */
const isAsked = (name: string) => name.startsWith("list ") || name.startsWith("open ");

function checkStep(before: InventoryDoc, after: InventoryDoc, name: string): void {
  expect(after.lowWaterMark).toBeGreaterThanOrEqual(before.lowWaterMark);
  const isNewStatus = after.status !== before.status;
  expect(after.statusRev).toBe(isNewStatus ? after.rev : before.statusRev);
  if (isNewStatus && !isAsked(name)) expect(after.pending).toBe(true);
  if (isAsked(name)) expect(after.pending).toBe(before.pending);
  expect(after.version).toBe(before.version + (isNewStatus || after.quantity !== before.quantity ? 1 : 0));
  expect(after.sold).toBeGreaterThanOrEqual(before.sold);
  if (before.state === "RETIRED") expect(after).toEqual({ ...before, rev: after.rev });
}

/** What an operation comes to: how it ended or why it was refused, and the successor if there is one. */
function run({ rule }: Operation, doc: InventoryDoc | undefined) {
  const rev = (doc?.rev ?? 0) + 1;
  try {
    const decision = rule(doc, rev);
    const { outcome = "OK" } = (decision.result ?? {}) as Partial<OperationResult>;
    return { outcome, put: decision.action === "put" ? { ...decision.doc, rev } : undefined };
  } catch (error) {
    if (error instanceof DomainError) return { outcome: error.reason, put: undefined };
    throw error;
  }
}

test("no oversell: in any order of operations the units add up, and a replayed operation keeps its answer", () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
      let doc: InventoryDoc | undefined;
      const ended = new Set<number>();
      for (const operation of operations) {
        const { outcome, put } = run(operation, doc);
        if (put) {
          checkEntry(put);
          if (doc) checkStep(doc, put, operation.name);
        }
        doc = put ?? doc;
        // Asked again at once, it answers alike and changes nothing.
        expect(run(operation, doc)).toEqual({ outcome, put: undefined });
        const [name, about] = operation.name.split(" ");
        if (put && (name === "release" || name === "commit")) ended.add(Number(about));
        // An order that was released or committed holds nothing, and never will.
        for (const order of ended) expect(doc && valueFor(doc.reservations, order)).toBeUndefined();
      }
    }),
    { numRuns: 2_000 },
  );
});
