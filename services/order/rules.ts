/**
 * State transitions of an order. Each rule is a pure function from the stored document to a decision. The result is the
 * order after the decision.
 *
 *     absent -> RESERVED -> COMPLETE        placed as complete: absent -> COMPLETE
 *     RESERVED -> CANCELLED
 *     absent -> ABORTED                     refused under a key, or no order came of a reservation
 */

import { type Decision, keep, put } from "@petstore/store/port";
import type { Order } from "#proto/petstore/order/v1/order_pb.ts";
import { checkPreconditions, DomainError, type Preconditions } from "../records/errors.ts";
import { FORMAT, succeed } from "../records/record.ts";
import { input, isTombstone, type OrderDoc, type OrderParams, type OrderRefusal, orderOf } from "./model.ts";

type State = OrderDoc["state"];
type Rule<R = OrderDoc> = (doc: OrderDoc | undefined, rev: number) => Decision<OrderDoc, R>;

/** What Inventory is told of an order. */
export type PlacedOrder = Pick<OrderParams, "petId" | "quantity"> & { readonly id: number };

export const orderNotFound = (id: bigint | number) => new DomainError("ORDER_NOT_FOUND", `No order has the id ${id}.`);

export function refusalError(refusal: OrderRefusal, { petId = 0n, quantity = 1 }: Partial<Order> = {}): DomainError {
  const messages: Record<OrderRefusal, string> = {
    PET_NOT_FOUND: `No pet has the id ${petId}.`,
    PET_NOT_AVAILABLE: `Pet ${petId} is not available now. Order it when its status is available again.`,
    INSUFFICIENT_STOCK: `Pet ${petId} has fewer than ${quantity} units in stock. Order less.`,
    TOO_MANY_OPEN_ORDERS: `Pet ${petId} has as many open orders as it can have. Complete or delete some first.`,
  };
  return new DomainError(refusal, messages[refusal]);
}

/** Nobody knows whether what was asked took effect. */
export const unfinished = (why = "The order could not be finished now; what was asked may still take effect.") =>
  new DomainError("UNAVAILABLE", `${why} Read the order, or try again.`);

/** Members removed from a tombstone. */
const cleared = {
  ...input.empty,
  ...{ visible: undefined, completed: undefined, tag: undefined },
} as const satisfies { readonly [K in keyof OrderDoc]?: undefined };

/** Puts the order into a state and sets what follows from the state. */
function become(doc: OrderDoc, state: State) {
  if (isTombstone({ state })) {
    const tombstone = { ...doc, ...cleared, state };
    return put(tombstone, tombstone);
  }
  const next: OrderDoc = { ...doc, state, visible: true, completed: doc.complete === true };
  return put(next, next);
}

/** A new order with its defaults: if it has a pet, quantity 1 and not complete. */
export const asPlaced = ({ petId, ...others }: OrderParams): OrderParams =>
  petId === undefined
    ? others
    : { petId, ...others, quantity: others.quantity ?? 1, complete: others.complete ?? false };

/** Stores a new order whose units are held, unless something is stored under its id. */
export const insert =
  (id: number, params: OrderParams, tag: string): Rule =>
  (doc, rev) => {
    if (doc) return keep(doc);
    const placed = asPlaced(params);
    const state = placed.complete ? "COMPLETE" : "RESERVED";
    const tagged = placed.petId === undefined ? {} : { tag };
    return become({ ...placed, ...tagged, _id: id, rev, version: 1, state, format: FORMAT }, state);
  };

/** Stores that no order comes of an id, unless something is stored under it. */
export const insertAborted =
  (id: number, refusal?: OrderRefusal): Rule =>
  (doc, rev) =>
    doc ? keep(doc) : become({ _id: id, rev, version: 1, state: "ABORTED", refusal, format: FORMAT }, "ABORTED");

/**
 * Changes the members that are not fixed, completes the order, or both. A member absent from `change` stays; one present
 * but undefined is removed.
 */
export const update =
  (id: bigint, change: OrderParams, preconditions: Preconditions): Rule =>
  (doc) => {
    if (!doc?.visible) throw orderNotFound(id);
    checkPreconditions(preconditions, doc.version);
    checkFixed(doc, change);
    const { petId, quantity, complete } = doc;
    const completes = change.complete === true && !complete;
    const next = succeed(doc, { ...change, petId, quantity, complete: completes || complete }, orderOf);
    if (next.version === doc.version) return keep(doc);
    return become(next, completes ? "COMPLETE" : doc.state);
  };

/** Throws when a fixed member would change; an equal value is no change. */
function checkFixed(doc: OrderDoc, { petId, quantity, complete }: OrderParams): void {
  if (complete === false && doc.complete)
    throw new DomainError("ORDER_COMPLETE", "The order is complete and can't be opened again.");
  const otherPet = petId !== undefined && petId !== doc.petId;
  const otherQuantity = quantity !== undefined && quantity !== doc.quantity;
  if (otherPet || otherQuantity)
    throw new DomainError(
      "ORDER_FIXED",
      `The ${otherPet ? "pet" : "quantity"} of an order is fixed once it is placed. Place another order instead.`,
    );
}

/** Cancels an open order. The result is the order before it, which says what has to be released. */
export const cancel =
  (id: bigint, preconditions: Preconditions): Rule =>
  (doc) => {
    if (!doc?.visible) throw orderNotFound(id);
    checkPreconditions(preconditions, doc.version);
    if (doc.state !== "RESERVED")
      throw new DomainError("ORDER_COMPLETE", "The order is complete and can't be deleted any more.");
    return put(become(doc, "CANCELLED").doc, doc);
  };
