import { create } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import * as z from "zod";
import { type Order, OrderSchema } from "#proto/petstore/order/v1/order_pb.ts";
import { DomainError } from "#shared/errors.ts";
import { type Stored, storedShape, toEtag } from "#shared/record.ts";
import { shapeOf } from "#shared/shape.ts";
import { type Collection, schema } from "#shared/store/port.ts";

/** A point in time as google.protobuf.Timestamp has it, in numbers that JSON and BSON hold exactly. */
export interface Moment {
  /** Since 1970, negative before. */
  readonly seconds: number;
  /** 0 to 999,999,999, counted forward also before 1970. */
  readonly nanos: number;
}

/** Stands for a pet's id that is too high to be one. */
export const NO_PET = 0;

/** What a client says about an order, in a fixed order of members. */
export interface OrderParams {
  readonly petId?: number | undefined;
  readonly quantity?: number | undefined;
  readonly complete?: boolean | undefined;
  readonly shipDate?: Moment | undefined;
}

/** Why Inventory did not reserve the units. */
export type Refusal = "PET_NOT_FOUND" | "PET_NOT_AVAILABLE" | "INSUFFICIENT_STOCK" | "TOO_MANY_OPEN_ORDERS";

/**
 * An order as it is stored. The states are those of `rules.ts`; listed from RESERVED to its end. ABORTED and CANCELLED are
 * tombstones without what the client said.
 */
export interface OrderDoc extends Stored, OrderParams {
  readonly state:
    | "PLACED"
    | "RESERVED"
    | "COMMITTING"
    | "COMPLETE"
    | "ABORTING"
    | "ABORTED"
    | "CANCELLING"
    | "CANCELLED";
  /** `complete` for filters, where absent counts as false. */
  readonly done?: boolean | undefined;
  /** When the order was placed, in milliseconds since 1970; as long as it is PLACED. */
  readonly placedAt?: number | undefined;
  /** Why it was aborted. Absent when it was given up without a decision: then another may take its place. */
  readonly refusal?: Refusal | undefined;
}

const orderShape = shapeOf<OrderDoc>()({
  ...storedShape.shape,
  state: z.literal(["PLACED", "RESERVED", "COMMITTING", "COMPLETE", "ABORTING", "ABORTED", "CANCELLING", "CANCELLED"]),
  petId: z.int().optional(),
  quantity: z.int().optional(),
  complete: z.boolean().optional(),
  shipDate: shapeOf<Moment>()({ seconds: z.int(), nanos: z.int() }).optional(),
  done: z.boolean().optional(),
  placedAt: z.int().optional(),
  refusal: z.literal(["PET_NOT_FOUND", "PET_NOT_AVAILABLE", "INSUFFICIENT_STOCK", "TOO_MANY_OPEN_ORDERS"]).optional(),
});

export const ORDERS = schema<OrderDoc>()(
  "orders",
  {
    listed: ["listed"],
    pet: ["listed", "petId"],
    done: ["listed", "done"],
    petDone: ["listed", "petId", "done"],
    todo: ["todo"],
    over: ["over"],
  },
  orderShape,
);
export const isTombstone = ({ state }: Pick<OrderDoc, "state">): boolean =>
  state === "ABORTED" || state === "CANCELLED";
export type Orders = Collection<OrderDoc, (typeof ORDERS)["indexes"]>;

export const toOrder = (id: number, { petId, quantity, complete, shipDate }: OrderParams, version: number): Order =>
  create(OrderSchema, {
    id: BigInt(id),
    petId: petId === undefined ? undefined : BigInt(petId),
    quantity,
    complete,
    shipDate: shipDate && create(TimestampSchema, { seconds: BigInt(shipDate.seconds), nanos: shipDate.nanos }),
    etag: toEtag(version),
  });

/** Throws VALIDATION_FAILED for nanoseconds that JSON could not show. The contract's rules see to the seconds. */
export function toMoment(time: Timestamp | undefined): Moment | undefined {
  if (!time) return undefined;
  const { seconds, nanos } = time;
  if (nanos >= 0 && nanos <= 999_999_999) return { seconds: Number(seconds), nanos };
  throw new DomainError("VALIDATION_FAILED", "nanos must be 0 to 999,999,999", { path: "order.ship_date" });
}
