/** Invariants of the stored documents. Violations are sentences. */
import { type InventoryDoc, ordersIn, valueFor } from "../../services/inventory/model.ts";
import type { CollectionName, State } from "./state.ts";

type Violation = string | false | undefined;

/** Invariants that hold at every instant, whatever crashed or was lost. Checked after each write, for the written document. */
export function wrongNow(state: State, collection: CollectionName, id: number): string[] {
  const violations = { categories: category, pets: pet, orders: order, inventory: entry }[collection](state, id);
  return violations.filter((violation) => typeof violation === "string");
}

function category({ categories, pets }: State, id: number): Violation[] {
  if (categories.get(id)?.state !== "DELETED") return [];
  return [...pets.values()].map(
    (pet) => pet.visible && pet.categoryId === id && `category ${id} is gone and pet ${pet._id} belongs to it`,
  );
}

function pet({ categories, pets, inventory }: State, id: number): Violation[] {
  const doc = pets.get(id);
  const stock = inventory.get(id);
  if (doc?.state === "DELETED" || doc?.state === "ABORTED")
    return [stock?.state === "OPEN" && `pet ${id} is ${doc.state} and its inventory entry is open`];
  if (doc?.state !== "ACTIVE") return [];
  const { state } = categories.get(doc.categoryId) ?? { state: "missing" };
  const retiring = doc.intent?.delete && stock?.state === "RETIRED";
  return [
    state !== "ACTIVE" && state !== "DELETING" && `pet ${id} belongs to category ${doc.categoryId}, which is ${state}`,
    stock?.state !== "OPEN" && !retiring && `pet ${id} is there and its inventory entry is ${stock?.state}`,
    stock && doc.statusRev > stock.statusRev && `pet ${id} has a status that Inventory never had`,
  ];
}

function order({ orders, inventory }: State, id: number): Violation[] {
  const doc = orders.get(id);
  const stock = doc?.petId === undefined ? undefined : inventory.get(doc.petId);
  const held = stock && valueFor(stock.reservations, id);
  const settled = stock && valueFor(stock.settled, id);
  if (!doc?.visible || doc.petId === undefined) return [];
  const holds = held === `${doc.quantity}:${doc.tag}`;
  if (doc.state === "RESERVED")
    return [!holds && `order ${id} is open and holds ${held ?? "no"} units instead of ${doc.quantity}:${doc.tag}`];
  const isSold = settled === "C" || (settled === undefined && id <= (stock?.lowWaterMark ?? 0)) || !stock?.visible;
  return [!holds && !isSold && `order ${id} is complete and its units are neither held nor sold`];
}

function entry({ orders, inventory }: State, id: number): Violation[] {
  const doc = inventory.get(id);
  if (!doc) return [];
  const holders = ordersIn(doc.reservations);
  return [
    ...ledger(doc),
    doc.state === "RETIRED" && holders.length > 0 && `inventory ${id} is retired with open orders`,
    // An order that was stored must not lose its units by a later write of the entry.
    ...[...orders.values()].flatMap((doc) => (doc.petId === id ? order({ orders, inventory } as State, doc._id) : [])),
  ];
}

/** No overselling: every unit that was received is in stock, reserved, or sold. */
function ledger({ _id, quantity, reserved, sold, received, openOrders, reservations }: InventoryDoc): Violation[] {
  const holders = ordersIn(reservations);
  const sum = holders.reduce((all, order) => all + Number.parseInt(valueFor(reservations, order) ?? "", 10), 0);
  return [
    received !== quantity + reserved + sold && `inventory ${_id}: ${received} != ${quantity} + ${reserved} + ${sold}`,
    reserved !== sum && `inventory ${_id}: ${reserved} reserved, orders hold ${sum}`,
    openOrders !== holders.length && `inventory ${_id}: ${openOrders} open orders, ${holders.length} hold units`,
    Math.min(quantity, reserved, sold) < 0 && `inventory ${_id} has less than nothing`,
  ];
}

const RESTING: readonly string[] = [
  ...["ACTIVE", "DELETED"],
  ...["RESERVED", "COMPLETE", "ABORTED", "CANCELLED"],
  ...["OPEN", "RETIRED"],
];

/** Whether some worker will still change the document. */
export const isUnfinished = (doc: object): boolean => "pending" in doc || "intent" in doc;

/** Invariants that hold when all faults are over and no worker has anything to do. */
export function wrongInTheEnd(state: State): string[] {
  const { categories, pets, orders, inventory } = state;
  const found: Violation[] = [];
  for (const [collection, docs] of Object.entries(state) as [CollectionName, Map<number, { state: string }>][])
    for (const [id, doc] of docs) {
      const rests = RESTING.includes(doc.state) && !isUnfinished(doc);
      found.push(!rests && `${collection} ${id} is unfinished: ${JSON.stringify(doc)}`);
      found.push(...wrongNow(state, collection, id));
    }
  for (const [id, doc] of pets) {
    const stock = inventory.get(id);
    const agree = doc.status === stock?.status && doc.statusRev === stock.statusRev;
    found.push(doc.state === "ACTIVE" && !agree && `pet ${id} is ${doc.status}, its inventory entry ${stock?.status}`);
  }
  for (const [id, doc] of inventory) {
    for (const order of ordersIn(doc.reservations))
      found.push(
        orders.get(order)?.state !== "RESERVED" &&
          `inventory ${id} holds units for order ${order}, which is ${orders.get(order)?.state}`,
      );
    const ofPet = [...orders.values()].filter(({ petId }) => petId === id);
    const units = (state: string) =>
      ofPet.filter((order) => order.state === state).reduce((all, { quantity = 0 }) => all + quantity, 0);
    const [held, sold] = [units("RESERVED"), units("COMPLETE")];
    found.push(doc.reserved !== held && `inventory ${id} holds ${doc.reserved} units, open orders have ${held}`);
    found.push(doc.sold !== sold && `inventory ${id} sold ${doc.sold} units, complete orders have ${sold}`);
    found.push(doc.state === "OPEN" && pets.get(id)?.state !== "ACTIVE" && `inventory ${id} is open without its pet`);
  }
  for (const [id, doc] of categories) found.push(doc.state === "DELETING" && `category ${id} is still being deleted`);
  return found.filter((violation) => typeof violation === "string");
}
