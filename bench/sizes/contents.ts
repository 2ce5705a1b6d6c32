/** What a petstore stores over time, pet by pet: made by the services' own rules, change by change. */
import { createHash } from "node:crypto";
import type { Doc } from "@petstore/store/port";
import { type CategoryDoc, nameOf as nameOfCategory } from "../../services/category/model.ts";
import * as category from "../../services/category/rules.ts";
import type { InventoryDoc } from "../../services/inventory/model.ts";
import * as inventory from "../../services/inventory/rules.ts";
import type { OrderDoc } from "../../services/order/model.ts";
import * as order from "../../services/order/rules.ts";
import { nameOf, type PetDoc } from "../../services/pet/model.ts";
import * as pet from "../../services/pet/rules.ts";
import { type Change, history, marks, named, type Written } from "../seed/written.ts";

const TAG = "Xq3_f0aB";
/** Pets in a category. */
const CATEGORY = 1000;
/** One pet in this many was created within the last day, for which idempotency keys are kept. */
const KEYED = 10;
/** The keys are spread evenly over the hours of a day. */
const HOURS = 24;

/** All documents of pet `id`: 1 in 20 pets is deleted, 7 in 10 were sold, 2 in 10 are in an open order. */
export function contents(id: number, now: number): Written[] {
  const categoryId = Math.ceil(id / CATEGORY);
  const params = { facts: { name: `Pet ${id}` }, categoryId };
  const bigId = BigInt(id);
  const entry = history<InventoryDoc>(inventory.open(id, "available"));
  const kept = history<PetDoc>(pet.insert(id, params), pet.activate(entry.now()));

  /** Changes the stock, and publishes the change to the pet. */
  const stock = (change: Change<InventoryDoc>) => {
    entry.change(change);
    kept.change(pet.applyStatus(bigId, entry.now()));
    entry.change(inventory.markPublished(entry.now().statusRev));
  };

  if (id % 3 === 0) stock(inventory.update(bigId, { quantity: 10 }, {}));
  const placed = { petId: id, quantity: 1, complete: false };
  const ordered = history<OrderDoc>(order.insert(id, placed, TAG));
  stock(inventory.reserve(id, 1, TAG));
  if (id % 10 < 7) {
    ordered.change(order.update(bigId, { complete: true }, {}));
    stock(inventory.commit(id, 1));
  } else if (id % 10 === 9) {
    ordered.change(order.cancel(bigId, {}));
    stock(inventory.release(id));
  }
  if (id % 20 === 4) {
    kept.change(pet.beginUpdate(bigId, { listing: "pending" }, {}, undefined));
    stock(inventory.setListing(kept.now().op, "pending"));
    kept.change(pet.applyIntent(kept.now().op, entry.now()));
  } else if (id % 20 === 0) {
    kept.change(pet.beginDeletion(bigId, {}));
    entry.change(inventory.retire(kept.now().op));
    kept.change(pet.applyDeletion(kept.now().op));
  }

  const hour = Math.floor(now / 3_600_000) - ((id / KEYED) % HOURS);
  const key = (of: "pet" | "order", params: object): Written => {
    const sha256 = (text: string) => createHash("sha256").update(text).digest("base64url");
    const doc = {
      _id: sha256(`${of} ${id}`),
      recordId: id,
      fingerprint: sha256(JSON.stringify(params)),
    };
    return { service: of, collection: "keys", states: [{ ...doc, hour, rev: 1 } as Doc] };
  };
  const joined = history<CategoryDoc>(category.insert(categoryId, { name: `category ${categoryId}` }));
  return [
    { service: "pet", collection: "pets", states: named(kept.states, nameOf) },
    { service: "inventory", collection: "inventory", states: entry.states },
    { service: "order", collection: "orders", states: ordered.states },
    ...(id % KEYED === 0 ? [key("pet", params), key("order", placed)] : []),
    ...(id === 1 ? marks : []),
    ...(id % CATEGORY === 1
      ? [{ service: "category", collection: "categories", states: named(joined.states, nameOfCategory) } as const]
      : []),
  ];
}
