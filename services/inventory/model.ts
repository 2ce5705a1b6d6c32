import * as s from "@petstore/store/document-schema";
import { type Collection, type Infer, schema } from "@petstore/store/port";
import type { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import {
  type InventoryItem,
  InventoryItemSchema,
  InventoryUpdateSchema,
} from "#proto/petstore/inventory/v1/inventory_pb.ts";
import {
  FORMAT,
  members,
  recordSchema,
  statusSchema,
  toEtag,
  toPetStatus,
  traceparentOf,
  whileVisible,
} from "../records/record.ts";

/** The members of an inventory entry that clients set. */
export const input = members(InventoryUpdateSchema, { quantity: s.int }, {});
export type InventoryChange = ReturnType<typeof input.changeOf>;

/**
 * A map from order ids to short values, kept as one string in ascending order of id, such as ";7=2;12=1". The store
 * handles a string as a whole, whereas it checks, encodes and decodes each field of an object separately on every change
 * of the document.
 */
type OrderMap = string;

export const NO_ORDERS: OrderMap = "";

/** Matches maps whose values are a number of units and a tag, such as "2:Xq3_f0aB". */
export const HELD_MAP = /^(?:;[1-9]\d*=[1-9]\d*:[\w-]+)*$/;
/** Matches maps whose values are C or X. */
const SETTLED_MAP = /^(?:;[1-9]\d*=[CX])*$/;
/** Matches maps whose values are traceparents. */
const TRACES_MAP = /^(?:;[1-9]\d*=[\da-f-]{55})*$/;

/** How an operation of Pet or Order ended. */
const operationOutcomeSchema = s.literal([
  ...(["OK", "NOT_FOUND", "NOT_AVAILABLE", "INSUFFICIENT_STOCK", "TOO_MANY_OPEN_ORDERS"] as const),
  ...(["OPEN_ORDERS", "STALE", "FENCED"] as const),
] satisfies readonly (keyof typeof Outcome)[]);
export type OperationOutcome = Infer<typeof operationOutcomeSchema>;

/**
 * An inventory entry as stored; `_id` is the pet's id.
 *
 * OPEN -> RETIRED, which is a tombstone. `reservations` holds up to 1,000 orders and `settled` up to 1,024.
 *
 * No oversell: in every entry at every instant received = quantity + reserved + sold, and none is negative. `quantity` is
 * what can still be sold.
 */
const inventoryDocSchema = s.object({
  ...recordSchema.fields,
  ...input.fields,
  state: s.literal(["OPEN", "RETIRED"]),
  /** Units held by open orders: the sum of `reservations`. */
  reserved: s.int,
  sold: s.int,
  /** Units that ever came in, less those written off. */
  received: s.int,
  /** How the pet is listed, whatever the stock says. */
  listing: statusSchema,
  /** The stricter of stock and listing. */
  status: statusSchema,
  /** Revision at which `status` last changed. */
  statusRev: s.int,
  /** The outbox: present until Pet has stored `status`. */
  pending: recordSchema.fields.pending,
  /** Number of orders in `reservations`. */
  openOrders: s.int,
  /** Present while there are open orders. The reservations worker reads no other entries. */
  hasReservations: s.literal([true]).optional,
  /** Units held by each open order, with the tag of the attempt that reserved them. */
  reservations: s.stringLike(HELD_MAP),
  /** The traceparents of the calls that made them, of those whose trace is recorded. */
  traces: s.stringLike(TRACES_MAP).optional,
  /** Orders whose reservation has ended: C committed, X released. */
  settled: s.stringLike(SETTLED_MAP),
  /** Orders up to this one may have been dropped from `settled`: none of them can reserve any more. */
  lowWaterMark: s.int,
  /** Pet's latest operation, what it asked for (absent: to retire) and its outcome, so that a repeat gets the same answer. */
  lastOp: s.object({ op: s.int, outcome: operationOutcomeSchema, listing: statusSchema.optional }),
});
export type InventoryDoc = Infer<typeof inventoryDocSchema>;

/** What callers see of an entry. */
export type InventoryView = Pick<InventoryDoc, "quantity" | "status" | "version">;

export const INVENTORY = {
  ...schema<InventoryDoc>()(
    "inventory",
    {
      visible: ["visible"],
      status: ["visible", "status"],
      pending: ["pending"],
      hasReservations: ["hasReservations"],
      endedOn: ["endedOn"],
    },
    inventoryDocSchema,
    whileVisible(({ quantity, status, version }: InventoryDoc): InventoryView => ({ quantity, status, version })),
    [],
    traceparentOf,
  ),
  formats: { newest: FORMAT },
};
export const isTombstone = ({ state }: Pick<InventoryDoc, "state">): boolean => state === "RETIRED";
export type Entries = Collection<InventoryDoc, (typeof INVENTORY)["indexes"], InventoryView>;

export const toInventoryItem = (doc: InventoryView & Pick<InventoryDoc, "_id">): InventoryItem =>
  input.toMessage(InventoryItemSchema, doc, {
    petId: BigInt(doc._id),
    status: toPetStatus(doc.status),
    etag: toEtag(doc.version),
  });

/** Where the entry after the one at `at` begins. */
const endOf = (map: OrderMap, at: number): number => {
  const end = map.indexOf(";", at + 1);
  return end < 0 ? map.length : end;
};
const orderAt = (map: OrderMap, at: number): number => Number(map.slice(at + 1, map.indexOf("=", at)));

export function valueFor(map: OrderMap, order: number): string | undefined {
  const name = `;${order}=`;
  const at = map.indexOf(name);
  return at < 0 ? undefined : map.slice(at + name.length, endOf(map, at));
}

/** Adds an order that is not in the map. */
export function withOrder(map: OrderMap, order: number, value: string | number): OrderMap {
  // New orders have high numbers, so their place is at or near the end.
  let at = map.length;
  while (at > 0) {
    const last = map.lastIndexOf(";", at - 1);
    if (orderAt(map, last) < order) break;
    at = last;
  }
  return `${map.slice(0, at)};${order}=${value}${map.slice(at)}`;
}

export function withoutOrder(map: OrderMap, order: number): OrderMap {
  const at = map.indexOf(`;${order}=`);
  return at < 0 ? map : map.slice(0, at) + map.slice(endOf(map, at));
}

/** The orders in the map with their values, ascending. */
export function entriesIn(map: OrderMap): [order: number, value: string][] {
  const entries: [number, string][] = [];
  for (let at = 0; at < map.length; at = endOf(map, at)) {
    const order = orderAt(map, at);
    entries.push([order, map.slice(map.indexOf("=", at) + 1, endOf(map, at))]);
  }
  return entries;
}

/** The orders in the map, ascending. */
export const ordersIn = (map: OrderMap): number[] => entriesIn(map).map(([order]) => order);

export function sizeOf(map: OrderMap): number {
  let size = 0;
  for (let at = 0; at < map.length; at = endOf(map, at)) size++;
  return size;
}

/** The highest order in the map, 0 if there is none. */
export const lastIn = (map: OrderMap): number => (map === NO_ORDERS ? 0 : orderAt(map, map.lastIndexOf(";")));

/** The `limit` highest orders of the map. `dropped` is the highest order that had to be left out, if any. */
export function highest(map: OrderMap, limit: number): { readonly map: OrderMap; readonly dropped?: number } {
  let [at, dropped] = [0, undefined as number | undefined];
  for (let excess = sizeOf(map) - limit; excess > 0; excess--) {
    dropped = orderAt(map, at);
    at = endOf(map, at);
  }
  return dropped === undefined ? { map } : { map: map.slice(at), dropped };
}
