import { create } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import * as s from "@petstore/store/document-schema";
import { type Collection, type Infer, schema } from "@petstore/store/port";
import { type Order, OrderSchema } from "#proto/petstore/order/v1/order_pb.ts";
import { DomainError } from "../records/errors.ts";
import {
  FORMAT,
  idOr,
  members,
  recordSchema,
  type StoredRecord,
  toEtag,
  traceparentOf,
  whileVisible,
} from "../records/record.ts";

/** A google.protobuf.Timestamp, in numbers that JSON and BSON hold exactly. */
const momentSchema = s.object({
  /** Seconds since 1970, negative before. */
  seconds: s.int,
  /** 0 to 999,999,999, counted forward even before 1970. */
  nanos: s.int,
});
export type Moment = Infer<typeof momentSchema>;

/** Stored in place of a pet id that no pet can have. */
export const NO_PET = 0;

/** The members of an order that clients set. */
export const input = members(
  OrderSchema,
  {
    petId: s.int.optional,
    quantity: s.int.optional,
    complete: s.boolean.optional,
    shipDate: momentSchema.optional,
  },
  { petId: idOr(NO_PET), shipDate: { fromMessage: toMoment, toMessage: toTimestamp } },
);

const paramsSchema = s.object(input.fields);
export type OrderParams = Infer<typeof paramsSchema>;

/** What callers see of an order. */
export type OrderView = OrderParams & Pick<StoredRecord, "version">;

/** Why Inventory did not reserve the units. */
const orderRefusalSchema = s.literal([
  "PET_NOT_FOUND",
  "PET_NOT_AVAILABLE",
  "INSUFFICIENT_STOCK",
  "TOO_MANY_OPEN_ORDERS",
]);
export type OrderRefusal = Infer<typeof orderRefusalSchema>;

/**
 * An order as stored; `rules.ts` describes the states. Callers see it while it is RESERVED or COMPLETE. ABORTED and CANCELLED
 * are tombstones, without what the client sent.
 */
const orderDocSchema = s.object({
  ...recordSchema.fields,
  ...input.fields,
  state: s.literal(["RESERVED", "COMPLETE", "ABORTED", "CANCELLED"]),
  /** `complete` for filters, where absent counts as false. */
  completed: s.boolean.optional,
  /** The tag of the attempt that reserved its units. Absent without a pet. */
  tag: s.string.optional,
  /** Why it was aborted. Absent when no order could be made of this id, so that a fresh id may take its place. */
  refusal: orderRefusalSchema.optional,
});
export type OrderDoc = Infer<typeof orderDocSchema>;

export const ORDERS = {
  ...schema<OrderDoc>()(
    "orders",
    {
      visible: ["visible"],
      pet: ["visible", "petId"],
      completed: ["visible", "completed"],
      petCompleted: ["visible", "petId", "completed"],
      endedOn: ["endedOn"],
    },
    orderDocSchema,
    whileVisible((doc: OrderDoc): OrderView => ({ ...input.partOf(doc), version: doc.version })),
    ["petId", "complete"],
    traceparentOf,
  ),
  formats: { newest: FORMAT },
};
export const isTombstone = ({ state }: Pick<OrderDoc, "state">): boolean =>
  state === "ABORTED" || state === "CANCELLED";
export type Orders = Collection<OrderDoc, (typeof ORDERS)["indexes"], OrderView>;

/** Shows `complete` also of an order that is stored without it. */
export const toOrder = (id: number, params: OrderParams, version: number): Order =>
  input.toMessage(OrderSchema, params, { id: BigInt(id), etag: toEtag(version), complete: false });

export const orderOf = (doc: OrderDoc): Order => toOrder(doc._id, doc, doc.version);

/** Throws VALIDATION_FAILED for nanoseconds that JSON could not show. The contract's rules check the seconds. */
function toMoment({ seconds, nanos }: Timestamp): Moment {
  if (nanos >= 0 && nanos <= 999_999_999) return { seconds: Number(seconds), nanos };
  throw new DomainError("VALIDATION_FAILED", "nanos must be 0 to 999,999,999", { path: "order.ship_date" });
}

function toTimestamp({ seconds, nanos }: Moment): Timestamp {
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos });
}
