/** The documents that the petstore's services store for the pets that every peer is filled with. */
import { type CategoryDoc, nameOf as nameOfCategory } from "../../services/category/model.ts";
import * as category from "../../services/category/rules.ts";
import type { InventoryDoc } from "../../services/inventory/model.ts";
import * as inventory from "../../services/inventory/rules.ts";
import type { OrderDoc } from "../../services/order/model.ts";
import * as order from "../../services/order/rules.ts";
import { nameOf, type PetDoc } from "../../services/pet/model.ts";
import * as pet from "../../services/pet/rules.ts";
import { CATEGORIES, petOf } from "./pets.ts";
import { history, marks, named, type Written } from "./written.ts";

const TAG = "Xq3_f0aB";

/**
 * The documents of pet `id`: the pet, its stock, and the category with the same id, if there is one. `isOrdered`: also a complete
 * order with the same id, if the pet is for sale.
 */
export function documentsOf(id: number, isOrdered = false): Written[] {
  const { name, categoryId, status, quantity } = petOf(id);
  const entry = history<InventoryDoc>(inventory.open(id, status));
  const params = { facts: { name }, categoryId, listing: status };
  const kept = history<PetDoc>(pet.insert(id, params), pet.activate(entry.now()));
  entry.change(inventory.update(BigInt(id), { quantity }, {}));
  const written: Written[] = [
    { service: "pet", collection: "pets", states: named(kept.states, nameOf) },
    { service: "inventory", collection: "inventory", states: entry.states },
  ];
  if (id <= CATEGORIES) {
    const { states } = history<CategoryDoc>(category.insert(id, { name: `category ${id}` }));
    written.push({ service: "category", collection: "categories", states: named(states, nameOfCategory) });
  }
  if (isOrdered && status === "available") {
    entry.change(inventory.reserve(id, 1, TAG));
    entry.change(inventory.commit(id, 1));
    const placed = { petId: id, quantity: 1, complete: true };
    const { states } = history<OrderDoc>(order.insert(id, placed, TAG));
    written.push({ service: "order", collection: "orders", states });
  }
  return id === 1 ? [...written, ...marks] : written;
}
