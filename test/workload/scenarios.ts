/** Every operation in each variant that takes other steps, with the operations that must come before it. */
import type { Operation } from "./operations.ts";

export interface Scenario {
  readonly name: string;
  /** Ids are positions among the records of this scenario, in the order of their creation. */
  readonly before: readonly Operation[];
  readonly act: Operation;
}

type Unmarked = Operation extends infer O ? (O extends unknown ? Omit<O, "mark"> : never) : never;
let marks = 0;
const mark = (operation: Unmarked): Operation => ({ ...operation, mark: ++marks }) as Operation;
const scenario = (name: string, before: Unmarked[], act: Unmarked): Scenario => ({
  name,
  before: before.map(mark),
  // A create has an idempotency key, so that it may be repeated.
  act: mark(/create|place/.test(act.do) ? { ...act, key: `key-${name.replaceAll(" ", "-")}` } : act),
});

const category: Unmarked = { do: "create category" };
const pet: Unmarked = { do: "create pet", category: 0 };
const aPet = [category, pet];
const order: Unmarked = { do: "place order", pet: 0, quantity: 1 };
const anOrder = [...aPet, order];

export const scenarios: readonly Scenario[] = [
  scenario("create category", [], category),
  scenario("rename category", [category], { do: "rename category", id: 0 }),
  scenario("delete category", [category], { do: "delete category", id: 0 }),
  scenario("delete category in use", aPet, { do: "delete category", id: 0 }),
  scenario("create pet", [category], pet),
  scenario("create pet in no category", [category, { do: "delete category", id: 0 }], pet),
  scenario("rename pet", aPet, { do: "change pet", id: 0 }),
  scenario("move and list pet", [...aPet, category], { do: "change pet", id: 0, category: 1, status: "sold" }),
  scenario("delete pet", aPet, { do: "delete pet", id: 0 }),
  scenario("delete pet with open orders", anOrder, { do: "delete pet", id: 0 }),
  scenario("place order", aPet, order),
  scenario("place complete order", aPet, { ...order, complete: true }),
  scenario("place order without stock", anOrder, { ...order }),
  scenario("place order without pet", [], { do: "place order", quantity: 1 }),
  scenario("date order", anOrder, { do: "date order", id: 0 }),
  scenario("complete order", anOrder, { do: "complete order", id: 0 }),
  scenario("cancel order", anOrder, { do: "cancel order", id: 0 }),
  scenario("stock", aPet, { do: "stock", id: 0, quantity: 5 }),
];

/** An order for a pet whose id does not exist yet. Only for tests where nothing else creates pets. */
export const tooEarly = scenario("place order for a pet to come", [category], order);

/** Writes that make a late call effective: there are units to reserve and another listing to undo. */
export const meanwhile: readonly Operation[] = (
  [
    { do: "create category" },
    { do: "create pet", category: 0 },
    { do: "stock", id: 0, quantity: 9 },
    { do: "change pet", id: 0, status: "available" },
    { do: "rename category", id: 0 },
  ] satisfies Unmarked[]
).map(mark);
