import { type Collection, type Infer, schema } from "@petstore/store/port";
import * as z from "zod";
import type { Outcome } from "#proto/petstore/internal/v1/inventory_internal_service_pb.ts";
import {
  type InventoryItem,
  InventoryItemSchema,
  InventoryUpdateSchema,
} from "#proto/petstore/inventory/v1/inventory_pb.ts";
import { members } from "../resource/members.ts";
import { statusShape, storedShape, toEtag, toPetStatus } from "../resource/record.ts";
import { SETTLED_MAP, UNITS_MAP } from "./order-map.ts";

/** What a client says about the stock of a pet. */
export const said = members(InventoryUpdateSchema, { quantity: z.int() }, {});
export type InventoryChange = ReturnType<typeof said.changeOf>;

/** How an operation of Pet or Order ended. */
const endingShape = z.literal([
  ...(["OK", "NOT_FOUND", "NOT_AVAILABLE", "INSUFFICIENT_STOCK", "TOO_MANY_OPEN_ORDERS"] as const),
  ...(["OPEN_ORDERS", "STALE", "FENCED"] as const),
] satisfies readonly (keyof typeof Outcome)[]);
export type Ending = z.output<typeof endingShape>;

/**
 * An inventory entry as it is stored; `_id` is the pet.
 *
 * OPEN -> RETIRED, which is a tombstone. A STUB is no entry: it only remembers orders that were released before the entry
 * was opened. There can be a thousand orders in each of `resv` and `done`.
 *
 * Its units: in every entry at every instant received = quantity + reserved + sold, and none is negative. `quantity` is what
 * can still be sold.
 */
const inventoryShape = z.object({
  ...storedShape.shape,
  ...said.fields,
  state: z.literal(["STUB", "OPEN", "RETIRED"]),
  /** What open orders hold: the sum of `resv`. */
  reserved: z.int(),
  sold: z.int(),
  /** All that ever came in, less what was written off. */
  received: z.int(),
  /** How the pet is listed, whatever the stock says. */
  listing: statusShape,
  /** The stricter of stock and listing. */
  status: statusShape,
  /** Revision at which `status` last changed. */
  statusRev: z.int(),
  /** Present until Pet knows `status`: the outbox of the status relay. */
  dirty: z.literal(true).optional(),
  /** Number of orders in `resv`. */
  open: z.int(),
  /** Present while `open` is above 0: what the reconciler looks through. */
  holding: z.literal(true).optional(),
  /** Units held by each open order. */
  resv: z.string().regex(UNITS_MAP),
  /** Orders that are settled: C committed, X released. */
  done: z.string().regex(SETTLED_MAP),
  /** Orders up to this one may have left `done`: none of them can reserve any more. */
  floor: z.int(),
  /** Pet's latest operation and how it ended, so that a repeat is answered alike. */
  lastOp: z.object({ op: z.int(), outcome: endingShape }),
});
export type InventoryDoc = Infer<typeof inventoryShape>;

export const INVENTORY = schema<InventoryDoc>()(
  "inventory",
  { listed: ["listed"], status: ["listed", "status"], dirty: ["dirty"], holding: ["holding"], over: ["over"] },
  inventoryShape,
);
/** A stub counts as one: what it remembers are orders that never were. */
export const isTombstone = ({ state }: Pick<InventoryDoc, "state">): boolean => state === "STUB" || state === "RETIRED";
export type Entries = Collection<InventoryDoc, (typeof INVENTORY)["indexes"]>;

/** An entry as the outside sees it. */
export const toInventoryItem = (doc: InventoryDoc): InventoryItem =>
  said.toMessage(InventoryItemSchema, doc, {
    petId: BigInt(doc._id),
    status: toPetStatus(doc.status),
    etag: toEtag(doc.version),
  });
