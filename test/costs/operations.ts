/** The operations whose costs docs/reliability.md shows, each as a client sends it when nothing else happens. */
import type { Operation } from "../workload/operations.ts";
import type { Performed } from "./count.ts";

type Unmarked = Operation extends infer O ? (O extends unknown ? Omit<O, "mark"> : never) : never;

export interface Costed extends Performed {
  /** Method, path and what is special, as the page has it. */
  readonly name: string;
  /** "done", or the code of the error. */
  readonly is: string;
}

const costed = (name: string, steps: readonly Unmarked[], is = "done"): Costed => {
  // A repeated step is the same request, so it has the same mark.
  const marked = steps.map((step) => ({ ...step, mark: 1 + steps.indexOf(step) }) as Operation);
  return { name, is, before: marked.slice(0, -1), act: marked.at(-1) as Operation };
};

const key = "key-1";
const category: Unmarked = { do: "create category" };
const keyedCategory: Unmarked = { ...category, key };
const pet: Unmarked = { do: "create pet", category: 1 };
const keyedPet: Unmarked = { ...pet, key };
const stray: Unmarked = { do: "create pet", category: 77 };
const keyedStray: Unmarked = { ...stray, key };
const petless: Unmarked = { do: "place order", quantity: 1 };
/**
 * Two categories, both of which Pet has seen, and in each a pet; the second one has five units. With the first order Order
 * asks which orders Inventory knows.
 */
const PET = 2;
const ORDER = 2;
const shop: readonly Unmarked[] = [
  category,
  category,
  { ...pet, category: 2 },
  { ...pet, category: 1 },
  { do: "stock", id: PET, quantity: 5 },
  petless,
];
const order: Unmarked = { do: "place order", pet: PET, quantity: 1 };
const keyed: Unmarked = { ...order, key };
const complete: Unmarked = { ...order, complete: true };
const last: Unmarked = { ...order, quantity: 5 };
const tooMuch: Unmarked = { ...order, quantity: 6 };
const keyedTooMuch: Unmarked = { ...tooMuch, key };
const completion: Unmarked = { do: "complete order", id: ORDER };
const cancellation: Unmarked = { do: "cancel order", id: ORDER };
const change = (change: { category?: number; status?: "pending" }): Unmarked => ({
  do: "change pet",
  id: PET,
  ...change,
});

const orders = "/store/orders";
const ofOrder = `${orders}/{orderId}`;
const ofPet = "/pets/{petId}";
const inventory = "/store/inventory/{petId}";
const ofCategory = "/categories/{categoryId}";

export const operations: readonly Costed[] = [
  costed(`POST ${orders}`, [...shop, order]),
  costed(`POST ${orders}, with a key`, [...shop, keyed]),
  costed(`POST ${orders}, with a key, again`, [...shop, keyed, keyed]),
  costed(`POST ${orders}, placed as complete`, [...shop, complete]),
  costed(`POST ${orders}, placed as complete, with a key`, [...shop, { ...complete, key }]),
  costed(`POST ${orders}, of the last units`, [...shop, last]),
  costed(`POST ${orders}, without a pet`, [petless, petless]),
  costed(`POST ${orders}, refused`, [...shop, tooMuch], "INSUFFICIENT_STOCK"),
  costed(`POST ${orders}, refused, with a key`, [...shop, keyedTooMuch], "INSUFFICIENT_STOCK"),
  costed(`POST ${orders}, refused, with a key, again`, [...shop, keyedTooMuch, keyedTooMuch], "INSUFFICIENT_STOCK"),
  costed(`PATCH ${ofOrder}, completed`, [...shop, order, completion]),
  costed(`PATCH ${ofOrder}, completed, again`, [...shop, order, completion, completion]),
  costed(`PATCH ${ofOrder}, another date`, [...shop, order, { do: "date order", id: ORDER }]),
  costed(`DELETE ${ofOrder}`, [...shop, order, cancellation]),
  costed(`DELETE ${ofOrder}, of the last units`, [...shop, last, cancellation]),
  costed(`DELETE ${ofOrder}, again`, [...shop, order, cancellation, cancellation], "ORDER_NOT_FOUND"),
  costed(`DELETE ${ofOrder}, complete`, [...shop, complete, cancellation], "ORDER_COMPLETE"),
  costed(`POST /pets`, [...shop, pet]),
  costed(`POST /pets, with a key`, [...shop, keyedPet]),
  costed(`POST /pets, with a key, again`, [...shop, keyedPet, keyedPet]),
  costed(`POST /pets, refused`, [stray], "CATEGORY_NOT_FOUND"),
  costed(`POST /pets, refused, with a key`, [keyedStray], "CATEGORY_NOT_FOUND"),
  costed(`PATCH ${ofPet}, another name`, [...shop, change({})]),
  costed(`PATCH ${ofPet}, another category`, [...shop, change({ category: 2 })]),
  costed(`PATCH ${ofPet}, another status`, [...shop, change({ status: "pending" })]),
  costed(`PATCH ${ofPet}, both`, [...shop, change({ category: 2, status: "pending" })]),
  costed(`DELETE ${ofPet}`, [...shop, { do: "delete pet", id: PET }]),
  costed(`DELETE ${ofPet}, refused`, [...shop, order, { do: "delete pet", id: PET }], "PET_HAS_OPEN_ORDERS"),
  costed(`PATCH ${inventory}`, [...shop, { do: "stock", id: PET, quantity: 6 }]),
  costed(`PATCH ${inventory}, to 0`, [...shop, { do: "stock", id: PET, quantity: 0 }]),
  costed(`POST /categories`, [category]),
  costed(`POST /categories, with a key`, [keyedCategory]),
  costed(`PATCH ${ofCategory}`, [category, { do: "rename category", id: 1 }]),
  costed(`DELETE ${ofCategory}`, [category, { do: "delete category", id: 1 }]),
  costed(`DELETE ${ofCategory}, refused`, [...shop, { do: "delete category", id: 1 }], "CATEGORY_IN_USE"),
];
