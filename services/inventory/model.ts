import { create } from "@bufbuild/protobuf";
import * as z from "zod";
import type { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import { type InventoryItem, InventoryItemSchema } from "#proto/petstore/inventory/v1/inventory_pb.ts";
import { type Status, type Stored, statusShape, storedShape, toEtag, toPetStatus } from "#shared/record.ts";
import { shapeOf } from "#shared/shape.ts";
import { type Collection, schema } from "#shared/store/port.ts";
import { type OrderMap, SETTLED_MAP, UNITS_MAP } from "./order-map.ts";

/** How an operation of Pet or Order ended. */
export type Ending = Exclude<keyof typeof Outcome, "UNSPECIFIED">;

/** The units of a pet. In every entry at every instant received = quantity + reserved + sold, and none is negative. */
export interface Units {
  /** What can still be sold. */
  readonly quantity: number;
  /** What open orders hold: the sum of `resv`. */
  readonly reserved: number;
  readonly sold: number;
  /** All that ever came in, less what was written off. */
  readonly received: number;
}

/**
 * An inventory entry as it is stored; `_id` is the pet.
 *
 * OPEN -> RETIRED, which is a tombstone. A STUB is no entry: it only remembers orders that were released before the entry
 * was opened. There can be a thousand orders in each of `resv` and `done`.
 */
export interface InventoryDoc extends Stored, Units {
  readonly state: "STUB" | "OPEN" | "RETIRED";
  /** How the pet is listed, whatever the stock says. */
  readonly listing: Status;
  /** The stricter of stock and listing. */
  readonly status: Status;
  /** Revision at which `status` last changed. */
  readonly statusRev: number;
  /** Present until Pet knows `status`: the outbox of the status relay. */
  readonly dirty?: true | undefined;
  /** Number of orders in `resv`. */
  readonly open: number;
  /** Present while `open` is above 0: what the reconciler looks through. */
  readonly holding?: true | undefined;
  /** Units held by each open order. */
  readonly resv: OrderMap;
  /** Orders that are settled: C committed, X released. */
  readonly done: OrderMap;
  /** Orders up to this one may have left `done`: none of them can reserve any more. */
  readonly floor: number;
  /** Pet's latest operation and how it ended, so that a repeat is answered alike. */
  readonly lastOp: { readonly op: number; readonly outcome: Ending };
}

const inventoryShape = shapeOf<InventoryDoc>()({
  ...storedShape.shape,
  state: z.literal(["STUB", "OPEN", "RETIRED"]),
  quantity: z.int(),
  reserved: z.int(),
  sold: z.int(),
  received: z.int(),
  listing: statusShape,
  status: statusShape,
  statusRev: z.int(),
  dirty: z.literal(true).optional(),
  open: z.int(),
  holding: z.literal(true).optional(),
  resv: z.string().regex(UNITS_MAP),
  done: z.string().regex(SETTLED_MAP),
  floor: z.int(),
  lastOp: shapeOf<InventoryDoc["lastOp"]>()({
    op: z.int(),
    outcome: z.literal([
      ...(["OK", "NOT_FOUND", "NOT_AVAILABLE", "INSUFFICIENT_STOCK", "TOO_MANY_OPEN_ORDERS"] as const),
      ...(["OPEN_ORDERS", "STALE", "FENCED"] as const),
    ]),
  }),
});

export const INVENTORY = schema<InventoryDoc>()(
  "inventory",
  { listed: ["listed"], status: ["listed", "status"], dirty: ["dirty"], holding: ["holding"], over: ["over"] },
  inventoryShape,
);
/** A stub counts as one: what it remembers are orders that never were. */
export const isTombstone = ({ state }: Pick<InventoryDoc, "state">): boolean => state === "STUB" || state === "RETIRED";
export type Entries = Collection<InventoryDoc, (typeof INVENTORY)["indexes"]>;

export const toInventoryItem = ({ _id, quantity, status, version }: InventoryDoc): InventoryItem =>
  create(InventoryItemSchema, {
    petId: BigInt(_id),
    quantity,
    status: toPetStatus(status),
    etag: toEtag(version),
  });
