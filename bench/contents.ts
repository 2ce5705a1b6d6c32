/** What a petstore leaves behind, pet by pet: made by the rules of the services themselves, one change after the other. */
import { createHash } from "node:crypto";
import { CATEGORIES } from "../services/category/document.ts";
import * as category from "../services/category/rules.ts";
import { INVENTORY, type InventoryDoc } from "../services/inventory/document.ts";
import * as inventory from "../services/inventory/rules.ts";
import { ORDERS, type OrderDoc } from "../services/order/document.ts";
import * as order from "../services/order/rules.ts";
import { PETS, type PetDoc } from "../services/pet/document.ts";
import * as pet from "../services/pet/rules.ts";
import { KEYS } from "../services/shared/keys.ts";
import type { Decision, Doc } from "../services/shared/store/port.ts";

export const SCHEMAS = {
  pet: { pets: PETS, keys: KEYS },
  inventory: { inventory: INVENTORY },
  order: { orders: ORDERS, keys: KEYS },
  category: { categories: CATEGORIES },
} as const;
export type Service = keyof typeof SCHEMAS;

export interface Written {
  readonly service: Service;
  readonly collection: string;
  readonly doc: Doc;
}

/** Pets in a category. */
const CATEGORY = 1000;
/** One pet in so many was created within the last day, for so long keys are kept. */
const KEYED = 10;
/** A day in the hours of the keys, each with as many. */
const HOURS = 24;

type Change<T extends Doc> = (doc: T | undefined, rev: number) => Decision<T, unknown>;

function after<T extends Doc>(doc: T | undefined, ...changes: readonly Change<T>[]): T {
  let current = doc;
  for (const change of changes) {
    const rev = (current?.rev ?? 0) + 1;
    const decision = change(current, rev);
    if (decision.action === "put") current = { ...decision.doc, rev } as T;
  }
  return current as T;
}

/** All that there is of pet `id`: 1 in 20 is deleted, 7 in 10 were sold, 2 in 10 are in an open order. */
export function contents(id: number, now: number): Written[] {
  const categoryId = Math.ceil(id / CATEGORY);
  const params = { facts: { name: `Pet ${id}` }, categoryId };
  const bigId = BigInt(id);
  let entry = after<InventoryDoc>(undefined, inventory.open(id, "available"), inventory.markTold(1));
  let kept = after<PetDoc>(undefined, pet.insert(id, params), pet.activate(entry));

  /** A change of the stock, which the pet hears of. */
  const stock = (...changes: readonly Change<InventoryDoc>[]) => {
    entry = after(entry, ...changes);
    kept = after(kept, pet.applyStatus(bigId, entry));
    entry = after(entry, inventory.markTold(entry.statusRev));
  };

  if (id % 3 === 0) stock(inventory.setQuantity(bigId, 10, undefined));
  const placed = { petId: id, quantity: 1, complete: false };
  let ordered = after<OrderDoc>(undefined, order.insert(id, placed, now));
  stock(inventory.reserve(id, 1));
  ordered = after(ordered, order.reserve);
  if (id % 10 < 7) {
    ordered = after(ordered, order.update(bigId, { complete: true }, undefined));
    stock(inventory.commit(id));
    ordered = after(ordered, order.commit);
  } else if (id % 10 === 9) {
    ordered = after(ordered, order.cancel(bigId, undefined));
    stock(inventory.release(id, id));
    ordered = after(ordered, order.release);
  }
  if (id % 20 === 4) {
    kept = after(kept, pet.beginUpdate(bigId, { listing: "pending" }, undefined, undefined));
    stock(inventory.setListing(kept.op, "pending"));
    kept = after(kept, pet.applyIntent(kept.op, entry));
  } else if (id % 20 === 0) {
    kept = after(kept, pet.beginDeletion(bigId, undefined));
    entry = after(entry, inventory.retire(kept.op));
    kept = after(kept, pet.applyDeletion(kept.op));
  }

  const hour = Math.floor(now / 3_600_000) - ((id / KEYED) % HOURS);
  const key = (of: "pet" | "order", params: object): Written => {
    const sha256 = (text: string) => createHash("sha256").update(text).digest("base64url");
    const doc = { _id: sha256(`${of} ${id}`), id, fingerprint: sha256(JSON.stringify(params)), params, floor: 0 };
    return { service: of, collection: "keys", doc: { ...doc, hour, rev: 1 } as Doc };
  };
  return [
    { service: "pet", collection: "pets", doc: kept },
    { service: "inventory", collection: "inventory", doc: entry },
    { service: "order", collection: "orders", doc: ordered },
    ...(id % KEYED === 0 ? [key("pet", params), key("order", placed)] : []),
    ...(id % CATEGORY === 1 ? [newCategory(categoryId)] : []),
  ];
}

const newCategory = (id: number): Written => {
  const doc = after(undefined, category.insert(id, { name: `category ${id}` }));
  return { service: "category", collection: "categories", doc };
};
