/** What may become of an inventory entry. Each rule takes the stored document and decides; none does I/O. */

import { type Decision, keep, put } from "@petstore/store/port";
import { DomainError } from "../resource/errors.ts";
import { type Condition, checkMatch, type Status, succeed } from "../resource/record.ts";
import { type Ending, type InventoryChange, type InventoryDoc, toInventoryItem } from "./model.ts";
import { highest, NO_ORDERS, valueFor, withOrder, withoutOrder } from "./order-map.ts";

type Decide<R> = (doc: InventoryDoc | undefined, rev: number) => Decision<InventoryDoc, R>;

/** How an operation ended, and the entry as it left it. */
export interface Ended {
  readonly outcome: Ending;
  /** Absent where there is no entry. */
  readonly entry?: InventoryDoc | undefined;
}

export const MOST_OPEN_ORDERS = 1_000;
/** Settled orders that an entry remembers one by one. */
export const MOST_DONE = 1_024;
/** Most units that can be in stock and in open orders together: what an int32 holds. */
export const MOST_UNITS = 2 ** 31 - 1;

export const isOpen = (doc: InventoryDoc | undefined): doc is InventoryDoc => doc?.state === "OPEN";

export const inventoryNotFound = (petId: bigint | number) =>
  new DomainError("INVENTORY_NOT_FOUND", `No pet with the id ${petId} has an inventory entry.`);

const strictness = { available: 0, pending: 1, sold: 2 } as const satisfies Record<Status, number>;

/** The stricter of what the stock says and how the pet is listed. */
export function statusOf({ quantity, open, listing }: Pick<InventoryDoc, "quantity" | "open" | "listing">): Status {
  const soldOut = open > 0 ? "pending" : "sold";
  const stock = quantity > 0 ? "available" : soldOut;
  return strictness[stock] > strictness[listing] ? stock : listing;
}

const ended = (outcome: Ending, entry?: InventoryDoc) => keep<Ended>({ outcome, entry });

/** Stores the successor of an entry with all that follows from the change. */
function become(doc: InventoryDoc, change: Partial<InventoryDoc>, rev: number, outcome: Ending = "OK") {
  const changed = { ...doc, ...change, rev };
  const status = statusOf(changed);
  const news = status === doc.status ? {} : ({ status, statusRev: rev, dirty: true } as const);
  const holding = changed.open > 0 ? (true as const) : undefined;
  const entry = succeed(doc, { ...change, rev, ...news, holding }, toInventoryItem);
  return put(entry, { outcome, entry });
}

const nothing = {
  quantity: 0,
  reserved: 0,
  sold: 0,
  received: 0,
  open: 0,
  resv: NO_ORDERS,
  done: NO_ORDERS,
  floor: 0,
  lastOp: { op: 0, outcome: "OK" },
  listing: "sold",
  status: "sold",
  statusRev: 0,
  version: 0,
  format: 1,
} as const;

/** Opens the entry of a pet. A stub becomes one and keeps what it remembers. */
export const open =
  (petId: number, listing: Status): Decide<Ended> =>
  (doc, rev) => {
    if (doc?.state === "RETIRED") return ended("NOT_FOUND");
    if (doc?.state === "OPEN") return ended("OK", doc);
    const quantity = listing === "sold" ? 0 : 1;
    const status = statusOf({ quantity, open: 0, listing });
    const entry: InventoryDoc = {
      ...(doc ?? { ...nothing, _id: petId }),
      ...{ rev, version: 1, state: "OPEN", listed: true },
      ...{ quantity, received: quantity, listing, status, statusRev: rev, dirty: true },
    };
    return put(entry, { outcome: "OK", entry });
  };

/** Why a new order for so many units is refused now; undefined when it is not. */
export function refusalOf(doc: InventoryDoc | undefined, units: number): Ending | undefined {
  if (!isOpen(doc)) return "NOT_FOUND";
  if (doc.listing !== "available" || doc.quantity === 0) return "NOT_AVAILABLE";
  if (doc.quantity < units) return "INSUFFICIENT_STOCK";
  return doc.open >= MOST_OPEN_ORDERS ? "TOO_MANY_OPEN_ORDERS" : undefined;
}

/** Takes the units of an order from the stock. An order that was settled before is a late attempt. */
export const reserve =
  (order: number, units: number): Decide<Ended> =>
  (doc, rev) => {
    if (!isOpen(doc)) return ended("NOT_FOUND");
    const settled = valueFor(doc.done, order);
    if (valueFor(doc.resv, order) || settled === "C") return ended("OK", doc);
    if (settled === "X" || order <= doc.floor) return ended("FENCED", doc);
    const refusal = refusalOf(doc, units);
    if (refusal) return ended(refusal, doc);
    const moved = { quantity: doc.quantity - units, reserved: doc.reserved + units, open: doc.open + 1 };
    return become(doc, { ...moved, resv: withOrder(doc.resv, order, units) }, rev);
  };

/** Turns a reservation into a sale. Nothing held is nothing to do: it was settled before, or the entry is gone. */
export const commit =
  (order: number): Decide<Ended> =>
  (doc, rev) => {
    const held = doc && heldBy(order, doc);
    if (!held) return ended("OK", doc);
    const moved = { reserved: doc.reserved - held, sold: doc.sold + held, open: doc.open - 1 };
    return become(doc, { ...moved, resv: withoutOrder(doc.resv, order), ...settle(doc, order, "C") }, rev);
  };

/** Gives a reservation back, or fences it off where it has not arrived yet: also before the entry is opened. */
export const release =
  (petId: number, order: number): Decide<Ended> =>
  (doc, rev) => {
    const held = doc && heldBy(order, doc);
    if (held) {
      const moved = { quantity: doc.quantity + held, reserved: doc.reserved - held, open: doc.open - 1 };
      return become(doc, { ...moved, resv: withoutOrder(doc.resv, order), ...settle(doc, order, "X") }, rev);
    }
    if (doc?.state === "RETIRED") return ended("OK", doc);
    const found: InventoryDoc = doc ?? { ...nothing, _id: petId, rev, state: "STUB" };
    if (order <= found.floor || valueFor(found.done, order)) return ended("OK", doc);
    return put({ ...found, ...settle(found, order, "X") }, { outcome: "OK", entry: doc });
  };

/** Units that an open order holds; 0 when it holds none. */
const heldBy = (order: number, { resv }: InventoryDoc): number => Number(valueFor(resv, order) ?? 0);

/** Remembers a settled order. The oldest leave when they are too many, and the floor takes their place. */
function settle({ done, floor }: Pick<InventoryDoc, "done" | "floor">, order: number, how: "C" | "X") {
  const { map, left = 0 } = highest(withOrder(done, order, how), MOST_DONE);
  return { done: map, floor: Math.max(floor, left) };
}

/** Changes what is given. Stock above 0 relists a pet that was listed as sold. */
export const update =
  (petId: bigint, { quantity, ...change }: InventoryChange, condition: Condition): Decide<{ entry: InventoryDoc }> =>
  (doc, rev) => {
    if (!isOpen(doc)) throw inventoryNotFound(petId);
    checkMatch(condition, doc.version);
    const next = become(doc, { ...change, ...(quantity === undefined ? {} : restock(doc, quantity)) }, rev);
    const isChanged = next.doc.version !== doc.version || next.doc.listing !== doc.listing;
    return isChanged ? next : keep({ entry: doc });
  };

function restock({ quantity: before, reserved, received, listing }: InventoryDoc, quantity: number) {
  if (quantity + reserved > MOST_UNITS) throw tooManyUnits(reserved);
  const relisted = quantity > 0 && listing === "sold" ? "available" : listing;
  return { quantity, received: received + quantity - before, listing: relisted };
}

const tooManyUnits = (reserved: number) =>
  new DomainError(
    "VALIDATION_FAILED",
    `must be at most ${MOST_UNITS - reserved}, because open orders hold ${reserved} units`,
    { path: "inventory.quantity" },
  );

/** Lists the pet. Units held by open orders do not count as stock. */
export const setListing =
  (op: number, listing: Status): Decide<Ended> =>
  (doc, rev) => {
    if (!isOpen(doc)) return ended("NOT_FOUND");
    const before = endingOf(op, doc);
    if (before) return ended(before, doc);
    const outcome = listing === "available" && doc.quantity === 0 ? "INSUFFICIENT_STOCK" : "OK";
    const change = outcome === "OK" ? { listing } : {};
    return become(doc, { ...change, lastOp: { op, outcome } }, rev, outcome);
  };

/** Closes the entry for good, unless open orders hold units. No order can reserve any more, so the fences may go. */
export const retire =
  (op: number): Decide<Ended> =>
  (doc, rev) => {
    if (doc?.state === "RETIRED") return ended("OK");
    if (!isOpen(doc)) return ended("NOT_FOUND");
    const before = endingOf(op, doc);
    if (before) return ended(before, doc);
    if (doc.open > 0) return become(doc, { lastOp: { op, outcome: "OPEN_ORDERS" } }, rev, "OPEN_ORDERS");
    const gone = { state: "RETIRED", listed: undefined, dirty: undefined, done: NO_ORDERS } as const;
    return put({ ...doc, ...gone, lastOp: { op, outcome: "OK" } }, { outcome: "OK" });
  };

/** How operation `op` of the pet ended, if it or a later one was applied before. */
function endingOf(op: number, { lastOp }: InventoryDoc): Ending | undefined {
  if (op < lastOp.op) return "STALE";
  return op === lastOp.op ? lastOp.outcome : undefined;
}

/** Pet knows the status of revision `statusRev`. A newer one is still to be told. */
export const markTold =
  (statusRev: number): Decide<void> =>
  (doc) =>
    doc?.dirty && doc.statusRev === statusRev ? put({ ...doc, dirty: undefined }, undefined) : keep(undefined);
