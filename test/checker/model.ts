/** A model of the whole petstore by its rules, without services, crashes or concurrency. */
import type { Status } from "../../services/records/record.ts";
import { type Kind, kindOf, type Operation } from "../workload/operations.ts";
import { nameOf, type Outcome, type Shown } from "../workload/perform.ts";

interface Pet {
  name: string;
  category: number;
  listing: Status;
  quantity: number;
}
interface Order {
  readonly pet: number | undefined;
  readonly quantity: number;
  complete: boolean;
  date: number;
}

const done = "done";
const strictness: readonly Status[] = ["available", "pending", "sold"];

export function createModel() {
  const categories = new Map<number, { name: string }>();
  const pets = new Map<number, Pet>();
  const orders = new Map<number, Order>();
  const keys = new Map<string, { readonly body: string; readonly answer: string }>();

  const openOrders = (pet: number) => [...orders.values()].filter((order) => order.pet === pet && !order.complete);

  function statusOf(id: number, { quantity, listing }: Pet): Status {
    const soldOut = openOrders(id).length > 0 ? "pending" : "sold";
    const stock = quantity > 0 ? "available" : soldOut;
    return strictness[Math.max(strictness.indexOf(stock), strictness.indexOf(listing))] as Status;
  }

  const collections = { category: categories, pet: pets, order: orders, inventory: pets };

  /** The reason for which the operation is refused; undefined if it is not. `versionOf` returns the version of a record. */
  function refusal(operation: Operation, versionOf: (kind: Kind, id: number) => number | undefined) {
    const kind = kindOf(operation);
    if ("id" in operation) {
      if (!collections[kind].has(operation.id)) return `${kind.toUpperCase()}_NOT_FOUND`;
      const isOther = operation.match !== undefined && operation.match !== versionOf(kind, operation.id);
      if (isOther) return "ETAG_MISMATCH";
    }
    switch (operation.do) {
      case "delete category":
        return [...pets.values()].some(({ category }) => category === operation.id) ? "CATEGORY_IN_USE" : undefined;
      case "create pet":
        return categories.has(operation.category) ? undefined : "CATEGORY_NOT_FOUND";
      case "change pet": {
        const noCategory = operation.category !== undefined && !categories.has(operation.category);
        if (noCategory) return "CATEGORY_NOT_FOUND";
        const noStock = operation.status === "available" && pets.get(operation.id)?.quantity === 0;
        return noStock ? "INSUFFICIENT_STOCK" : undefined;
      }
      case "delete pet":
        return openOrders(operation.id).length > 0 ? "PET_HAS_OPEN_ORDERS" : undefined;
      case "place order": {
        if (operation.pet === undefined) return undefined;
        const pet = pets.get(operation.pet);
        if (!pet) return "PET_NOT_FOUND";
        if (statusOf(operation.pet, pet) !== "available") return "PET_NOT_AVAILABLE";
        return pet.quantity < operation.quantity ? "INSUFFICIENT_STOCK" : undefined;
      }
      case "cancel order":
        return orders.get(operation.id)?.complete ? "ORDER_COMPLETE" : undefined;
      default:
        return undefined;
    }
  }

  /** Applies an operation that is not refused. `id` is that of the new record, if there is one. */
  function apply(operation: Operation, id: number): void {
    const target = "id" in operation ? operation.id : id;
    const pet = pets.get(target);
    const order = orders.get(target);
    switch (operation.do) {
      case "create category":
      case "rename category":
        return void categories.set(target, { name: nameOf(operation.mark) });
      case "delete category":
        return void categories.delete(target);
      case "create pet": {
        const { category, status: listing = "available" } = operation;
        const quantity = listing === "sold" ? 0 : 1;
        return void pets.set(id, { name: nameOf(operation.mark), category, listing, quantity });
      }
      case "change pet": {
        const { category = pet?.category, status = pet?.listing } = operation;
        return void Object.assign(pet ?? {}, { name: nameOf(operation.mark), category, listing: status });
      }
      case "delete pet":
        return void pets.delete(target);
      case "place order": {
        const { quantity, pet: ordered } = operation;
        const complete = operation.complete ?? false;
        take(ordered, quantity);
        return void orders.set(id, { pet: ordered, quantity, complete, date: operation.mark });
      }
      case "date order":
        return void Object.assign(order ?? {}, { date: operation.mark });
      case "complete order":
        return void Object.assign(order ?? {}, { complete: true });
      case "cancel order":
        take(order?.pet, -(order?.quantity ?? 0));
        return void orders.delete(target);
      case "stock": {
        const listing = operation.quantity > 0 && pet?.listing === "sold" ? "available" : pet?.listing;
        return void Object.assign(pet ?? {}, { quantity: operation.quantity, listing });
      }
    }
  }

  function take(id: number | undefined, quantity: number): void {
    const pet = id === undefined ? undefined : pets.get(id);
    if (pet) pet.quantity -= quantity;
  }

  return {
    /** Returns how the operation must end, "done" or a reason, given how it did end, and applies it to the model. */
    expect(operation: Operation, outcome: Outcome, versionOf: (kind: Kind, id: number) => number | undefined): string {
      const name = `${kindOf(operation)} ${operation.key}`;
      const body = JSON.stringify(operation);
      const shown = outcome.is === "done" ? outcome.shown : undefined;
      const before = operation.key === undefined ? undefined : keys.get(name);
      if (before) {
        if (before.body !== body) return "IDEMPOTENCY_KEY_REUSED";
        if (before.answer !== JSON.stringify(shown)) return before.answer;
        return done;
      }
      const reason = refusal(operation, versionOf);
      if (operation.key !== undefined) keys.set(name, { body, answer: reason ?? JSON.stringify(shown) });
      if (reason) return reason;
      apply(operation, shown?.id ?? 0);
      return done;
    },

    /** Everything visible from outside, as "kind id" to view. */
    views(): Map<string, Shown["view"]> {
      const views = new Map<string, Shown["view"]>();
      for (const [id, { name }] of categories) views.set(`category ${id}`, { name });
      for (const [id, pet] of pets) {
        const { name, category, quantity } = pet;
        views.set(`pet ${id}`, { name, category, status: statusOf(id, pet) });
        views.set(`inventory ${id}`, { quantity, status: statusOf(id, pet) });
      }
      for (const [id, { pet, quantity, complete, date }] of orders)
        views.set(`order ${id}`, { pet, quantity, complete, date });
      return views;
    },
  };
}
