/**
 * What may become of an order. Each rule takes the stored document and decides; none does I/O. All answer with the order
 * as it is after the decision, also when another has moved it on before.
 *
 *     PLACED -> RESERVED -> COMMITTING -> COMPLETE       placed as complete: PLACED -> COMMITTING
 *     PLACED -> ABORTING -> ABORTED                      refused, or given up
 *     RESERVED -> CANCELLING -> CANCELLED
 *
 * An order without a pet takes nothing from the stock and skips the states that wait for it.
 */

import { type Decision, keep, put } from "@petstore/store/port";
import type { Order } from "#proto/petstore/order/v1/order_pb.ts";
import { DomainError } from "../resource/errors.ts";
import { type Condition, checkMatch, succeed } from "../resource/record.ts";
import { isTombstone, type OrderDoc, type OrderParams, type Refusal, said, shown } from "./model.ts";

type State = OrderDoc["state"];
type Move<R = OrderDoc> = (doc: OrderDoc | undefined, rev: number) => Decision<OrderDoc, R>;

/** How long a placed order may wait for Inventory before it is given up, in milliseconds. */
export const PLACED_FOR_MS = 6_000;

export const orderNotFound = (id: bigint | number) => new DomainError("ORDER_NOT_FOUND", `No order has the id ${id}.`);

export function refusalError(refusal: Refusal, { petId = 0n, quantity = 1 }: Partial<Order> = {}): DomainError {
  const messages: Record<Refusal, string> = {
    PET_NOT_FOUND: `No pet has the id ${petId}.`,
    PET_NOT_AVAILABLE: `Pet ${petId} is not available now. Order it when its status is available again.`,
    INSUFFICIENT_STOCK: `Pet ${petId} has fewer than ${quantity} units in stock. Order less.`,
    TOO_MANY_OPEN_ORDERS: `Pet ${petId} has as many open orders as it can have. Complete or delete some first.`,
  };
  return new DomainError(refusal, messages[refusal]);
}

/** CANCELLING too, so that every read meets it: an order is gone when its units are back, and not before. */
const VISIBLE: ReadonlySet<State> = new Set<State>(["RESERVED", "COMMITTING", "COMPLETE", "CANCELLING"]);
const FINISHED: ReadonlySet<State> = new Set<State>(["RESERVED", "COMPLETE", "ABORTED", "CANCELLED"]);

/** What a tombstone lacks. */
const shed = {
  ...said.unsaid,
  ...{ listed: undefined, todo: undefined, done: undefined, placedAt: undefined },
} as const satisfies { readonly [K in keyof OrderDoc]?: undefined };

/** The order in a state, with all that follows from the state. */
function become(doc: OrderDoc, state: State): Decision<OrderDoc, OrderDoc> {
  if (isTombstone({ state })) {
    const tombstone = { ...doc, ...shed, state };
    return put(tombstone, tombstone);
  }
  const next: OrderDoc = {
    ...doc,
    state,
    listed: VISIBLE.has(state) || undefined,
    todo: !FINISHED.has(state) || undefined,
    done: doc.complete === true,
    placedAt: state === "PLACED" ? doc.placedAt : undefined,
  };
  return put(next, next);
}

/** An arrow starts from its state and nothing else. */
const arrow =
  (from: State, move: (doc: OrderDoc) => Decision<OrderDoc, OrderDoc>): Move<OrderDoc | undefined> =>
  (doc) =>
    doc?.state === from ? move(doc) : keep(doc);

/** An order as it first is: one for a pet has a quantity and is complete or not. */
export const asPlaced = ({ petId, ...said }: OrderParams): OrderParams =>
  petId === undefined ? said : { petId, ...said, quantity: said.quantity ?? 1, complete: said.complete ?? false };

/** Places an order, unless its id is already written. `now` is in milliseconds since 1970. */
export const insert =
  (id: number, params: OrderParams, now: number): Move =>
  (doc, rev) => {
    if (doc) return keep(doc);
    const order = { ...asPlaced(params), _id: id, rev, version: 1, state: "PLACED", placedAt: now, format: 1 } as const;
    if (order.petId !== undefined) return become(order, "PLACED");
    return become(order, order.complete ? "COMPLETE" : "RESERVED");
  };

/** Writes a tombstone in place of an order that was never placed: refused, or given up. No units were asked for. */
export const insertAborted =
  (id: number, refusal?: Refusal): Move =>
  (doc, rev) =>
    doc ? keep(doc) : become({ _id: id, rev, version: 1, state: "ABORTED", refusal, format: 1 }, "ABORTED");

/** Inventory holds the units for the order. */
export const reserve = arrow("PLACED", (doc) => become(doc, doc.complete ? "COMMITTING" : "RESERVED"));

/** Inventory does not hold the units; without a refusal, the order is given up. Answered only when it is sure to stay so. */
export const abort = (refusal?: Refusal) => arrow("PLACED", (doc) => become({ ...doc, refusal }, "ABORTING"));

/** Gives up an order that has waited too long. */
export const timeOut = (now: number) =>
  arrow("PLACED", (doc) => (now - (doc.placedAt ?? 0) < PLACED_FOR_MS ? keep(doc) : become(doc, "ABORTING")));

/** Inventory has booked the units as sold. */
export const commit = arrow("COMMITTING", (doc) => become(doc, "COMPLETE"));

/** Inventory has the units back, or never gave them. */
export const release: Move<OrderDoc | undefined> = (doc) => {
  if (doc?.state === "ABORTING") return become(doc, "ABORTED");
  return doc?.state === "CANCELLING" ? become(doc, "CANCELLED") : keep(doc);
};

/** What a request says. Absent means unchanged; a member that is there but undefined is removed. */
export type Change = OrderParams;

/** Changes what is not fixed, completes the order, or both. One that is being cancelled is left as it is. */
export const update =
  (id: bigint, change: Change, condition: Condition): Move =>
  (doc) => {
    if (doc?.state === "CANCELLING") return keep(doc);
    if (!doc?.listed) throw orderNotFound(id);
    checkMatch(condition, doc.version);
    checkFixed(doc, change);
    const { petId, quantity, complete } = doc;
    const completes = change.complete === true && !complete;
    const next = succeed(doc, { ...change, petId, quantity, complete: completes || complete }, shown);
    if (next.version === doc.version) return keep(doc);
    if (!completes) return become(next, doc.state);
    return become(next, petId === undefined ? "COMPLETE" : "COMMITTING");
  };

/** Only a value that differs is a change. */
function checkFixed(doc: OrderDoc, { petId, quantity, complete }: Change): void {
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

/** Cancels an open order, or joins the cancellation that is under way. */
export const cancel =
  (id: bigint, condition: Condition): Move =>
  (doc) => {
    if (doc?.state === "CANCELLING") return keep(doc);
    if (!doc?.listed) throw orderNotFound(id);
    checkMatch(condition, doc.version);
    if (doc.state !== "RESERVED")
      throw new DomainError("ORDER_COMPLETE", "The order is complete and can't be deleted any more.");
    return become(doc, doc.petId === undefined ? "CANCELLED" : "CANCELLING");
  };
