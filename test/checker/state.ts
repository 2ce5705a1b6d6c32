/** All that the four services have stored at one instant, and what of it is visible from outside. */
import type { CategoryDoc } from "../../services/category/model.ts";
import type { InventoryDoc } from "../../services/inventory/model.ts";
import type { OrderDoc } from "../../services/order/model.ts";
import type { PetDoc } from "../../services/pet/model.ts";
import type { Stored } from "../simulation/disk.ts";
import type { Kind } from "../workload/operations.ts";
import type { Shown } from "../workload/perform.ts";
import type { Write } from "./events.ts";

export interface State {
  readonly categories: Map<number, CategoryDoc>;
  readonly pets: Map<number, PetDoc>;
  readonly orders: Map<number, OrderDoc>;
  readonly inventory: Map<number, InventoryDoc>;
}
export const emptyState = (): State => ({
  categories: new Map(),
  pets: new Map(),
  orders: new Map(),
  inventory: new Map(),
});

export type CollectionName = keyof State;
export const isRecord = (collection: string): collection is CollectionName =>
  ["categories", "pets", "orders", "inventory"].includes(collection);

const kinds = { categories: "category", pets: "pet", orders: "order", inventory: "inventory" } as const;
const collections = { category: "categories", pet: "pets", order: "orders", inventory: "inventory" } as const;

/** A record as it is visible from outside. */
export function shownIn(state: State, kind: Kind, id: number): Shown | undefined {
  const collection = collections[kind];
  const stored = state[collection].get(id) as unknown as Stored | undefined;
  return stored && shownBy(collection, stored);
}

/** A stored record as a write that is visible from outside. */
export const writeOf = (collection: CollectionName, stored: Stored): Write => ({
  kind: kinds[collection],
  id: stored._id as number,
  shown: shownBy(collection, stored),
});

/** A stored record as an answer would show it; undefined if it is not visible from outside. */
export function shownBy(collection: CollectionName, stored: Stored): Shown | undefined {
  if (!stored.visible) return undefined;
  const common = { id: stored._id as number, version: stored.version as number };
  switch (collection) {
    case "categories": {
      const { name } = stored as unknown as CategoryDoc;
      return { kind: "category", ...common, view: { name } };
    }
    case "pets": {
      const { facts, categoryId: category, status } = stored as unknown as PetDoc;
      return { kind: "pet", ...common, view: { ...facts, category, status } };
    }
    case "orders": {
      const { petId: pet, quantity, complete = false, shipDate } = stored as unknown as OrderDoc;
      return { kind: "order", ...common, view: { pet, quantity, complete, date: shipDate?.seconds } };
    }
    case "inventory": {
      const { quantity, status } = stored as unknown as InventoryDoc;
      return { kind: "inventory", ...common, view: { quantity, status } };
    }
  }
}
