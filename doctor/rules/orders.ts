/** What must hold within an order, and between it and the entry of its pet. Pure. */
import type { Decide } from "@petstore/store/port";
import { type InventoryDoc, valueFor } from "../../services/inventory/model.ts";
import { commit, type OperationResult, reserve } from "../../services/inventory/rules.ts";
import { isTombstone, NO_PET, type OrderDoc } from "../../services/order/model.ts";
import { type Finding, finding } from "../findings.ts";
import { contradictions } from "./contradictions.ts";

/** What follows from the state of an order. */
function derived(doc: OrderDoc) {
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
  return contradictions(id, doc, derived, ({ orders }, mended) => orders.update(doc._id, mended));
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
