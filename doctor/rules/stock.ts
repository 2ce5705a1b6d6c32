/** What must hold within an inventory entry and an order, and between the two: who holds units, and for whom. Pure. */
import { type Decide, keep, put } from "@petstore/store/port";
import { type InventoryDoc, toInventoryItem, valueFor } from "../../services/inventory/model.ts";
import {
  commit,
  type OperationResult,
  type Reservation,
  release,
  reservationsIn,
  reserve,
  statusOf,
} from "../../services/inventory/rules.ts";
import { isTombstone, NO_PET, type OrderDoc } from "../../services/order/model.ts";
import { insertAborted } from "../../services/order/rules.ts";
import { succeed } from "../../services/records/record.ts";
import { type Finding, finding } from "../findings.ts";
import { contradictions } from "./records.ts";

type Rule = Decide<InventoryDoc, void>;

const isBalanced = ({ quantity, reserved, sold, received }: InventoryDoc): boolean =>
  received === quantity + reserved + sold && Math.min(quantity, reserved, sold) >= 0;

const ofEntry = ({ state }: InventoryDoc) => ({ visible: state === "OPEN" ? (true as const) : undefined });

function counted(doc: InventoryDoc) {
  const held = reservationsIn(doc);
  const reserved = held.reduce((sum, { units }) => sum + units, 0);
  return { reserved, openOrders: held.length, hasReservations: held.length > 0 ? (true as const) : undefined };
}

export const recount: Rule = (doc) => (doc ? put({ ...doc, ...counted(doc) }, undefined) : keep(undefined));

/** Derives the status anew, and has it published with a number above `known`. */
export const restate =
  (known = 0): Rule =>
  (doc) => {
    if (doc?.state !== "OPEN") return keep(undefined);
    const statusRev = Math.max(doc.statusRev, known) + 1;
    return put(succeed(doc, { status: statusOf(doc), statusRev, pending: true }, toInventoryItem), undefined);
  };

/** Whether all units are accounted for, and the status follows from them. */
export function wrongInEntry(doc: InventoryDoc): Finding[] {
  const id = `inventory/${doc._id}`;
  const { quantity, reserved, sold, received, openOrders, state, status } = doc;
  const count = counted(doc);
  const found = contradictions(id, doc, ofEntry, ({ entries }, mended) => entries.update(doc._id, mended));
  const isCounted =
    reserved === count.reserved && openOrders === count.openOrders && doc.hasReservations === count.hasReservations;
  if (!isCounted || !isBalanced(doc)) {
    const held = `${count.openOrders} orders hold ${count.reserved}`;
    const detail = `Of ${received} units received, ${quantity} are in stock, ${reserved} reserved for ${openOrders} orders, and ${sold} sold; ${held}.`;
    const isSafe = isBalanced({ ...doc, ...count });
    found.push(
      finding("stock-sum", [id], detail, isSafe ? { mend: ({ entries }) => entries.update(doc._id, recount) } : {}),
    );
  }
  if (state === "RETIRED" && count.openOrders > 0)
    found.push(finding("stock-sum", [id], `It is closed for good, and holds ${count.reserved} units for orders.`));
  if (state === "OPEN" && status !== statusOf(doc))
    found.push(
      finding("status-stale", [id], `It says ${status}, and by its stock and listing it is ${statusOf(doc)}.`, {
        mend: ({ entries }) => entries.update(doc._id, restate()),
      }),
    );
  return found;
}

/** Whether units are held for an open order. `order` is what is stored under its id. */
export function wrongInReservation(
  { petId, order: id, units, tag }: Reservation,
  order: OrderDoc | undefined,
): Finding[] {
  const isSame = order?.petId === petId && order.tag === tag;
  if (isSame && order.state === "RESERVED") return [];
  const isSold = isSame && order.state === "COMPLETE";
  const what = isSame ? order.state : order?.petId === undefined ? (order?.state ?? "missing") : "for other units";
  return [
    finding(
      "reservation-without-order",
      [`inventory/${petId}`, `order/${id}`],
      `${units} units are held for an order that is ${what}.`,
      {
        of: `${tag} ${what}`,
        mend: async ({ orders, entries }) => {
          if (isSold) return entries.update(petId, commit(id, units));
          // Whoever stores first under an id wins, also when the petstore runs again.
          await orders.update(id, insertAborted(id));
          return entries.update(petId, release(id));
        },
      },
    ),
  ];
}

function ofOrder(doc: OrderDoc) {
  const isThere = !isTombstone(doc);
  return {
    visible: isThere ? (true as const) : undefined,
    completed: isThere ? doc.complete === true : undefined,
  };
}

export function wrongInOrder(doc: OrderDoc): Finding[] {
  const id = `order/${doc._id}`;
  const { state, complete = false } = doc;
  if (!isTombstone(doc) && complete !== (state === "COMPLETE"))
    return [finding("corrupt-document", [id], `It is ${state}, and its member complete is ${complete}.`)];
  return contradictions(id, doc, ofOrder, ({ orders }, mended) => orders.update(doc._id, mended));
}

/** The pet whose units an order has, if any. */
export const petOf = (doc: OrderDoc): number | undefined =>
  isTombstone(doc) || doc.petId === NO_PET ? undefined : doc.petId;

/** Whether the units of an order are held, or sold once it is complete. `entry` is that of its pet. */
export function wrongInOrdered(doc: OrderDoc, entry: InventoryDoc | undefined): Finding[] {
  const petId = petOf(doc);
  if (petId === undefined) return [];
  const { _id, quantity = 1, tag = "", state } = doc;
  if (entry && valueFor(entry.reservations, _id) === `${quantity}:${tag}`) return [];
  const isComplete = state === "COMPLETE";
  const settled = entry && valueFor(entry.settled, _id);
  // An entry forgets what it sold, at last with its pet.
  const isForgotten = entry?.state !== "OPEN" || (settled === undefined && _id <= entry.lowWaterMark);
  if (isComplete && (settled === "C" || isForgotten)) return [];
  const rule: Decide<InventoryDoc, OperationResult> = isComplete ? commit(_id, quantity) : reserve(_id, quantity, tag);
  const isSafe = entry && rule(entry, entry.rev + 1).action === "put";
  return [
    finding(
      "order-without-reservation",
      [`order/${_id}`, `inventory/${petId}`],
      isComplete
        ? `The order is complete, and its ${quantity} units are neither held nor sold.`
        : `The order is open, and its ${quantity} units are not held.`,
      isSafe ? { mend: ({ entries }) => entries.update(petId, rule) } : {},
    ),
  ];
}
