import * as s from "@petstore/store/document-schema";
import { type Collection, type Infer, schema } from "@petstore/store/port";
import type { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import {
  type InventoryItem,
  InventoryItemSchema,
  InventoryUpdateSchema,
} from "#proto/petstore/inventory/v1/inventory_pb.ts";
import { members } from "../records/members.ts";
import {
  FORMAT,
  recordSchema,
  statusSchema,
  toEtag,
  toPetStatus,
  traceparentOf,
  whileVisible,
} from "../records/record.ts";
import { HELD_MAP, SETTLED_MAP, TRACES_MAP } from "./order-map.ts";

/** The members of an inventory entry that clients set. */
export const input = members(InventoryUpdateSchema, { quantity: s.int }, {});
export type InventoryChange = ReturnType<typeof input.changeOf>;

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

/** An entry as callers see it. */
export const toInventoryItem = (doc: InventoryView & Pick<InventoryDoc, "_id">): InventoryItem =>
  input.toMessage(InventoryItemSchema, doc, {
    petId: BigInt(doc._id),
    status: toPetStatus(doc.status),
    etag: toEtag(doc.version),
  });
