/**
 * State transitions of an order. Each rule is a pure function from the stored document to a decision. The result is the
 * order after the decision, even when a concurrent request or worker has taken the same step before.
 *
 *     PLACED -> RESERVED -> COMMITTING -> COMPLETE       placed as complete: PLACED -> COMMITTING
 *     PLACED -> ABORTING -> ABORTED                      refused, or abandoned
 *     RESERVED -> CANCELLING -> CANCELLED
 *
 * An order without a pet takes nothing from the stock and skips the pending states.
 */

import { type Decision, keep, put } from "@petstore/store/port";
import type { Order } from "#proto/petstore/order/v1/order_pb.ts";
import { DomainError } from "../resource/errors.ts";
import { checkPreconditions, FORMAT, type Preconditions, succeed } from "../resource/record.ts";
import {
  input,
  isTombstone,
  type OrderDoc,
  type OrderParams,
  type OrderRefusal,
  orderOf,
  PENDING_STATES,
  type PendingState,
} from "./model.ts";

type State = OrderDoc["state"];
type Rule<R = OrderDoc> = (doc: OrderDoc | undefined, rev: number) => Decision<OrderDoc, R>;

/** How long an order may be PLACED before the recovery worker aborts it, in milliseconds. */
export const PLACED_TIMEOUT_MS = 6_000;

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

/**
 * Includes CANCELLING, so that a read finds the order and finishes the cancellation: an order is gone when its units are
 * back, and not before.
 */
const VISIBLE: ReadonlySet<State> = new Set<State>(["RESERVED", "COMMITTING", "COMPLETE", "CANCELLING"]);
const PENDING: ReadonlySet<State> = new Set<State>(PENDING_STATES);
export const isPending = (state: State): state is PendingState => PENDING.has(state);

/** Members removed from a tombstone. */
const cleared = {
  ...input.empty,
  ...{ visible: undefined, pending: undefined, completed: undefined, placedAt: undefined },
} as const satisfies { readonly [K in keyof OrderDoc]?: undefined };

/** Puts the order into a state and sets what follows from the state. */
function become(doc: OrderDoc, state: State): Decision<OrderDoc, OrderDoc> {
  if (isTombstone({ state })) {
    const tombstone = { ...doc, ...cleared, state };
    return put(tombstone, tombstone);
  }
  const next: OrderDoc = {
    ...doc,
    state,
    visible: VISIBLE.has(state) || undefined,
    pending: isPending(state) || undefined,
    completed: doc.complete === true,
    placedAt: state === "PLACED" ? doc.placedAt : undefined,
  };
  return put(next, next);
}

/** Applies `rule` in state `from`; in any other state the order is kept. */
const transition =
  (from: State, rule: (doc: OrderDoc) => Decision<OrderDoc, OrderDoc>): Rule<OrderDoc | undefined> =>
  (doc) =>
    doc?.state === from ? rule(doc) : keep(doc);

/** A new order with its defaults: if it has a pet, quantity 1 and not complete. */
export const asPlaced = ({ petId, ...others }: OrderParams): OrderParams =>
  petId === undefined
    ? others
    : { petId, ...others, quantity: others.quantity ?? 1, complete: others.complete ?? false };

/** Places an order, unless its id is already written. `now` is in milliseconds since 1970. */
export const insert =
  (id: number, params: OrderParams, now: number): Rule =>
  (doc, rev) => {
    if (doc) return keep(doc);
    const order = {
      ...asPlaced(params),
      _id: id,
      rev,
      version: 1,
      state: "PLACED",
      placedAt: now,
      format: FORMAT,
    } as const;
    if (order.petId !== undefined) return become(order, "PLACED");
    return become(order, order.complete ? "COMPLETE" : "RESERVED");
  };

/** Writes a tombstone in place of an order that was never placed: refused, or abandoned. No units were asked for. */
export const insertAborted =
  (id: number, refusal?: OrderRefusal): Rule =>
  (doc, rev) =>
    doc ? keep(doc) : become({ _id: id, rev, version: 1, state: "ABORTED", refusal, format: FORMAT }, "ABORTED");

/** PLACED -> RESERVED or COMMITTING: Inventory holds the units for the order. */
export const reserve = transition("PLACED", (doc) => become(doc, doc.complete ? "COMMITTING" : "RESERVED"));

/**
 * PLACED -> ABORTING: Inventory does not hold the units. Without a refusal the order is abandoned. A refusal is answered
 * only once the order is ABORTED.
 */
export const abort = (refusal?: OrderRefusal) => transition("PLACED", (doc) => become({ ...doc, refusal }, "ABORTING"));

/** Aborts an order that has been PLACED for too long. */
export const timeOut = (now: number) =>
  transition("PLACED", (doc) => (now - (doc.placedAt ?? 0) < PLACED_TIMEOUT_MS ? keep(doc) : become(doc, "ABORTING")));

/** Inventory has turned the reservation into a sale. */
export const commit = transition("COMMITTING", (doc) => become(doc, "COMPLETE"));

/** Inventory has the units back, or never reserved them. */
export const release: Rule<OrderDoc | undefined> = (doc) => {
  if (doc?.state === "ABORTING") return become(doc, "ABORTED");
  return doc?.state === "CANCELLING" ? become(doc, "CANCELLED") : keep(doc);
};

/**
 * Changes the members that are not fixed, completes the order, or both. A member absent from `change` stays; one present
 * but undefined is removed. An order that is being cancelled is left as it is.
 */
export const update =
  (id: bigint, change: OrderParams, preconditions: Preconditions): Rule =>
  (doc) => {
    if (doc?.state === "CANCELLING") return keep(doc);
    if (!doc?.visible) throw orderNotFound(id);
    checkPreconditions(preconditions, doc.version);
    checkFixed(doc, change);
    const { petId, quantity, complete } = doc;
    const completes = change.complete === true && !complete;
    const next = succeed(doc, { ...change, petId, quantity, complete: completes || complete }, orderOf);
    if (next.version === doc.version) return keep(doc);
    if (!completes) return become(next, doc.state);
    return become(next, petId === undefined ? "COMPLETE" : "COMMITTING");
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

/**
 * Cancels an open order. If a cancellation is under way already, the order is left as it is, and the caller joins by
 * advancing it.
 */
export const cancel =
  (id: bigint, preconditions: Preconditions): Rule =>
  (doc) => {
    if (doc?.state === "CANCELLING") return keep(doc);
    if (!doc?.visible) throw orderNotFound(id);
    checkPreconditions(preconditions, doc.version);
    if (doc.state !== "RESERVED")
      throw new DomainError("ORDER_COMPLETE", "The order is complete and can't be deleted any more.");
    return become(doc, doc.petId === undefined ? "CANCELLED" : "CANCELLING");
  };
