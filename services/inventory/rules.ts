/** State transitions of an inventory entry. Each rule is a pure function from the stored document to a decision. */

import { type Decision, keep, put } from "@petstore/store/port";
import { checkPreconditions, DomainError, type Preconditions } from "../records/errors.ts";
import { FORMAT, type Status, succeed } from "../records/record.ts";
import {
  entriesIn,
  highest,
  type InventoryChange,
  type InventoryDoc,
  lastIn,
  NO_ORDERS,
  type OperationOutcome,
  toInventoryItem,
  valueFor,
  withOrder,
  withoutOrder,
} from "./model.ts";

type Rule<R> = (doc: InventoryDoc | undefined, rev: number) => Decision<InventoryDoc, R>;

/** How an operation ended, and the entry after it. */
export interface OperationResult {
  readonly outcome: OperationOutcome;
  /** Absent where there is no entry. */
  readonly entry?: InventoryDoc | undefined;
}

export const MAX_OPEN_ORDERS = 1_000;
/** Most settled orders that an entry remembers individually. */
export const MAX_SETTLED = 1_024;
/** Most units that can be in stock and in open orders together: what an int32 holds. */
export const MAX_UNITS = 2 ** 31 - 1;

export const isOpen = (doc: InventoryDoc | undefined): doc is InventoryDoc => doc?.state === "OPEN";

export const inventoryNotFound = (petId: bigint | number) =>
  new DomainError("INVENTORY_NOT_FOUND", `No pet with the id ${petId} has an inventory entry.`);

const strictness = { available: 0, pending: 1, sold: 2 } as const satisfies Record<Status, number>;

/** The stricter of the status that follows from the stock and the status that the pet is listed with. */
export function statusOf({
  quantity,
  openOrders,
  listing,
}: Pick<InventoryDoc, "quantity" | "openOrders" | "listing">): Status {
  const soldOut = openOrders > 0 ? "pending" : "sold";
  const stock = quantity > 0 ? "available" : soldOut;
  return strictness[stock] > strictness[listing] ? stock : listing;
}

const unchanged = (outcome: OperationOutcome, entry?: InventoryDoc) => keep<OperationResult>({ outcome, entry });

/**
 * Stores the entry with the change and everything that follows from it. A new status is put into the outbox (`pending`),
 * unless the change sets `pending` itself.
 */
function become(doc: InventoryDoc, change: Partial<InventoryDoc>, rev: number, outcome: OperationOutcome = "OK") {
  const changed = { ...doc, ...change, rev };
  const status = statusOf(changed);
  const statusRev = Math.max(rev, doc.statusRev + 1);
  const newStatus = status === doc.status ? {} : ({ status, statusRev, pending: true } as const);
  const hasReservations = changed.openOrders > 0 ? (true as const) : undefined;
  const entry = succeed(doc, { ...newStatus, ...change, rev, hasReservations }, toInventoryItem);
  return put(entry, { outcome, entry });
}

const empty = {
  quantity: 0,
  reserved: 0,
  sold: 0,
  received: 0,
  openOrders: 0,
  reservations: NO_ORDERS,
  settled: NO_ORDERS,
  lowWaterMark: 0,
  lastOp: { op: 0, outcome: "OK" },
  listing: "sold",
  status: "sold",
  statusRev: 0,
  version: 0,
  format: FORMAT,
} as const;

/**
 * Opens the entry of a pet, with one unit unless it is listed as sold. The status is not put into the outbox, because Pet
 * repeats the call until it has stored the answer. With `knownStatusRev` the pet has had an entry, which is lost: it begins
 * anew without units, and with a later status.
 */
export const open =
  (petId: number, listing: Status, knownStatusRev?: number): Rule<OperationResult> =>
  (doc, rev) => {
    if (doc) return isOpen(doc) ? unchanged("OK", doc) : unchanged("NOT_FOUND");
    const quantity = knownStatusRev !== undefined || listing === "sold" ? 0 : 1;
    const statusRev = Math.max(rev, (knownStatusRev ?? 0) + 1);
    const status = statusOf({ quantity, openOrders: 0, listing });
    const entry: InventoryDoc = {
      ...{ ...empty, _id: petId },
      ...{ rev, version: 1, state: "OPEN", visible: true },
      ...{ quantity, received: quantity, listing, status, statusRev },
    };
    return put(entry, { outcome: "OK", entry });
  };

/** Why a new order for this many units is refused; undefined if it is not. */
function refusalOf({ listing, quantity, openOrders }: InventoryDoc, units: number): OperationOutcome | undefined {
  if (listing !== "available" || quantity === 0) return "NOT_AVAILABLE";
  if (quantity < units) return "INSUFFICIENT_STOCK";
  return openOrders >= MAX_OPEN_ORDERS ? "TOO_MANY_OPEN_ORDERS" : undefined;
}

/**
 * Takes the units of an order from the stock. FENCED for an id that has ended here, or may have, and for one whose units
 * are held under another tag.
 */
export const reserve =
  (order: number, units: number, tag: string, traceparent?: string): Rule<OperationResult> =>
  (doc, rev) => {
    if (!isOpen(doc)) return unchanged("NOT_FOUND");
    const held = heldBy(order, doc);
    if (held) return unchanged(held.tag === tag ? "OK" : "FENCED", doc);
    if (valueFor(doc.settled, order) || order <= doc.lowWaterMark) return unchanged("FENCED", doc);
    const refusal = refusalOf(doc, units);
    if (refusal) return unchanged(refusal, doc);
    const moved = {
      quantity: doc.quantity - units,
      reserved: doc.reserved + units,
      openOrders: doc.openOrders + 1,
    };
    const reservations = withOrder(doc.reservations, order, `${units}:${tag}`);
    const traces = traceparent === undefined ? doc.traces : withOrder(doc.traces ?? NO_ORDERS, order, traceparent);
    return become(doc, { ...moved, reservations, traces }, rev);
  };

/** The highest order that the entry knows. */
export const highestOrder = ({ reservations, settled, lowWaterMark }: InventoryDoc): number =>
  Math.max(lastIn(reservations), lastIn(settled), lowWaterMark);

/**
 * Turns an order's reservation into a sale. An order that was committed before, or is too old to be remembered, changes
 * nothing. One that is not known otherwise has lost its reservation, as after the entry was restored from an older copy:
 * its units are taken from the stock, if there are enough.
 */
export const commit =
  (order: number, units: number): Rule<OperationResult & { readonly lostReservation?: true }> =>
  (doc, rev) => {
    if (!isOpen(doc)) return unchanged("OK", doc);
    const held = heldBy(order, doc)?.units;
    if (held) {
      const moved = { reserved: doc.reserved - held, sold: doc.sold + held };
      return become(doc, { ...moved, ...settle(doc, order, "C") }, rev);
    }
    if (valueFor(doc.settled, order) === "C" || order <= doc.lowWaterMark) return unchanged("OK", doc);
    if (doc.quantity < units) return keep({ outcome: "INSUFFICIENT_STOCK", entry: doc, lostReservation: true });
    const moved = { quantity: doc.quantity - units, sold: doc.sold + units };
    const taken = become(doc, { ...moved, ...remember(doc, order, "C") }, rev);
    return { ...taken, result: { ...taken.result, lostReservation: true } };
  };

/** Returns an order's reservation to the stock. */
export const release =
  (order: number): Rule<OperationResult> =>
  (doc, rev) => {
    const held = doc && heldBy(order, doc)?.units;
    if (!held) return unchanged("OK", doc);
    const moved = { quantity: doc.quantity + held, reserved: doc.reserved - held };
    return become(doc, { ...moved, ...settle(doc, order, "X") }, rev);
  };

/** A value of `reservations`, such as "2:Xq3_f0aB". */
function heldIn(value: string) {
  const [units, tag = ""] = value.split(":");
  return { units: Number(units), tag };
}

/** What an open order holds. */
function heldBy(order: number, { reservations }: InventoryDoc) {
  const value = valueFor(reservations, order);
  return value === undefined ? undefined : heldIn(value);
}

/** An order's reservation, with the tag of the attempt that made it. */
export interface Reservation {
  readonly petId: number;
  readonly order: number;
  readonly units: number;
  readonly tag: string;
  readonly traceparent?: string | undefined;
}

/** All reservations of an entry. */
export function reservationsIn({ _id: petId, reservations, traces = NO_ORDERS }: InventoryDoc): Reservation[] {
  const traceparents = new Map(entriesIn(traces));
  return entriesIn(reservations).map(([order, value]) => ({
    petId,
    order,
    ...heldIn(value),
    traceparent: traceparents.get(order),
  }));
}

/** Ends the reservation of an order. */
const settle = (doc: InventoryDoc, order: number, ending: "C" | "X") => ({
  openOrders: doc.openOrders - 1,
  reservations: withoutOrder(doc.reservations, order),
  // With the last open order go those that were left by an older process, which does not know of them.
  traces: (doc.openOrders > 1 && doc.traces && withoutOrder(doc.traces, order)) || undefined,
  ...remember(doc, order, ending),
});

/** Remembers a settled order. When there are too many, the oldest are dropped and the low-water mark fences them instead. */
function remember({ settled, lowWaterMark }: InventoryDoc, order: number, ending: "C" | "X") {
  const { map, dropped = 0 } = highest(withOrder(withoutOrder(settled, order), order, ending), MAX_SETTLED);
  return { settled: map, lowWaterMark: Math.max(lowWaterMark, dropped) };
}

/** Applies the members that `change` has. Stock above 0 makes a pet that was listed as sold available again. */
export const update =
  (
    petId: bigint,
    { quantity, ...change }: InventoryChange,
    preconditions: Preconditions,
  ): Rule<{ entry: InventoryDoc }> =>
  (doc, rev) => {
    if (!isOpen(doc)) throw inventoryNotFound(petId);
    checkPreconditions(preconditions, doc.version);
    const next = become(doc, { ...change, ...(quantity === undefined ? {} : restock(doc, quantity)) }, rev);
    const isChanged = next.doc.version !== doc.version || next.doc.listing !== doc.listing;
    return isChanged ? next : keep({ entry: doc });
  };

function restock({ quantity: before, reserved, received, listing }: InventoryDoc, quantity: number) {
  if (quantity + reserved > MAX_UNITS) throw tooManyUnits(reserved);
  const relisted = quantity > 0 && listing === "sold" ? "available" : listing;
  return { quantity, received: received + quantity - before, listing: relisted };
}

const tooManyUnits = (reserved: number) =>
  new DomainError(
    "VALIDATION_FAILED",
    `must be at most ${MAX_UNITS - reserved}, because open orders hold ${reserved} units`,
    { path: "inventory.quantity" },
  );

/**
 * Sets how the pet is listed. Units held by open orders do not count as stock. As with `open`, Pet learns the status from
 * the answer and not from the outbox. If Pet knows a later status than the entry has had, the entry is older than the pet,
 * as after it was restored: its status goes above that.
 */
export const setListing =
  (op: number, listing: Status, knownStatusRev = 0): Rule<OperationResult> =>
  (found, rev) => {
    if (!isOpen(found)) return unchanged("NOT_FOUND");
    const doc = { ...found, statusRev: Math.max(found.statusRev, knownStatusRev) };
    const before = earlierOutcome(op, listing, doc);
    if (before) return unchanged(before, found);
    const outcome = listing === "available" && doc.quantity === 0 ? "INSUFFICIENT_STOCK" : "OK";
    const change = outcome === "OK" ? { listing } : {};
    const ahead = doc.statusRev > found.statusRev ? { statusRev: doc.statusRev + 1 } : {};
    return become(doc, { ...change, ...ahead, lastOp: { op, outcome, listing }, pending: doc.pending }, rev, outcome);
  };

/** Closes the entry for good, unless open orders hold units. No order can reserve any more, so `settled` is cleared. */
export const retire =
  (op: number): Rule<OperationResult> =>
  (doc, rev) => {
    if (doc?.state === "RETIRED") return unchanged("OK");
    if (!isOpen(doc)) return unchanged("NOT_FOUND");
    const before = earlierOutcome(op, undefined, doc);
    if (before) return unchanged(before, doc);
    if (doc.openOrders > 0) return become(doc, { lastOp: { op, outcome: "OPEN_ORDERS" } }, rev, "OPEN_ORDERS");
    const gone = { state: "RETIRED", visible: undefined, pending: undefined, settled: NO_ORDERS } as const;
    return put({ ...doc, ...gone, lastOp: { op, outcome: "OK" } }, { outcome: "OK" });
  };

/**
 * The outcome of operation `op` of the pet if it was applied before; STALE if a later one was, or another one of the same
 * number, as a pet that was restored from an older copy gives it again.
 */
function earlierOutcome(
  op: number,
  listing: Status | undefined,
  { lastOp }: InventoryDoc,
): OperationOutcome | undefined {
  if (op > lastOp.op) return undefined;
  return op === lastOp.op && listing === lastOp.listing ? lastOp.outcome : "STALE";
}

/** Removes the status of revision `publishedRev` from the outbox, because Pet has stored it. A newer status stays there. */
const cleared = <D extends InventoryDoc | undefined>(doc: D, publishedRev: number | undefined): D =>
  doc?.pending && doc.statusRev === publishedRev ? { ...doc, pending: undefined } : doc;

/** The same rule, on an entry whose outbox is cleared: what it stores is without the status that was published. */
export const onceCleared =
  <R>(rule: Rule<R>, publishedRev: number | undefined): Rule<R> =>
  (doc, rev) =>
    rule(cleared(doc, publishedRev), rev);

/**
 * Numbers the status above that of the pet, and puts it into the outbox. Pet has a status as late as the entry's, and another
 * one, only if the entry was restored from an older copy.
 */
export const overtakeStatus =
  (kept: Pick<InventoryDoc, "status" | "statusRev">): Rule<OperationResult> =>
  (doc) => {
    const isBehind =
      doc && (doc.statusRev < kept.statusRev || (doc.statusRev === kept.statusRev && doc.status !== kept.status));
    if (!isOpen(doc) || !isBehind) return unchanged("OK");
    const entry: InventoryDoc = { ...doc, statusRev: kept.statusRev + 1, pending: true };
    return put(entry, { outcome: "OK", entry });
  };

/** Clears the outbox and changes nothing else. */
export const markPublished =
  (publishedRev: number | undefined): Rule<void> =>
  (doc) => {
    const next = cleared(doc, publishedRev);
    return next && next !== doc ? put(next, undefined) : keep(undefined);
  };
