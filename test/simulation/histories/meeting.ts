/**
 * A few operations that meet on the same records, in a petstore in which nothing goes wrong but the order of things: here
 * the races are found that long histories rarely come to.
 */
import fc from "fast-check";
import { isCreate } from "../../checker/violations.ts";
import { type Operation, prelude, UNKNOWN } from "../../workload/operations.ts";
import { randomFaults } from "../fault-injector.ts";
import { type History, type HistoryKind, histories, openShop, strikesOf, type Witness } from "./history.ts";

const before: Operation[] = [
  ...prelude,
  { do: "place order", pet: 0, quantity: 1, mark: 905 },
  { do: "create category", mark: 906 },
];
/** The category without pets. */
const EMPTY = 2;
/** The record that was made first, or the one that is just being made. */
const which = fc.constantFrom(0, UNKNOWN);
/** The version that the records have at first, or a later one. */
const match = fc.constantFrom(undefined, undefined, undefined, 1, 2);
const act: fc.Arbitrary<Operation> = fc
  .oneof(
    fc.record({ do: fc.constant("create pet" as const), category: fc.constantFrom(0, EMPTY, UNKNOWN) }),
    fc.record({ do: fc.constant("create category" as const) }),
    fc.record({ do: fc.constant("place order" as const), pet: which, quantity: fc.constant(1) }),
    fc.record({
      do: fc.constant("change pet" as const),
      id: which,
      category: fc.constantFrom(undefined, EMPTY, UNKNOWN),
      status: fc.constantFrom(undefined, undefined, "available" as const, "sold" as const),
      match,
    }),
    fc.record({ do: fc.constant("rename category" as const), id: fc.constant(EMPTY), match }),
    fc.record({ do: fc.constant("delete category" as const), id: fc.constant(EMPTY), match }),
    fc.record({ do: fc.constant("delete pet" as const), id: which, match }),
    fc.record({
      do: fc.constantFrom("complete order" as const, "cancel order" as const, "date order" as const),
      id: which,
      match,
    }),
    fc.record({ do: fc.constant("stock" as const), id: which, quantity: fc.constantFrom(0, 2), match }),
    fc.record({
      do: fc.constantFrom("see category" as const, "see pet" as const, "see order" as const, "see inventory" as const),
      id: fc.constantFrom(0, EMPTY, UNKNOWN),
      how: fc.constantFrom("alone" as const, "listed" as const),
    }),
  )
  .map((operation) => ({ ...operation, mark: 0 }));

/** Of the creates some have a key, the same for all, with one of two bodies; each body has its own mark. */
const body = fc.constantFrom(undefined, undefined, 0, 1);
const named = (operation: Operation, body: number | undefined, index: number) =>
  body !== undefined && isCreate(operation) ? { key: "key", mark: KEYED + body } : { mark: index + 1 };
const KEYED = 100;

async function run(drawn: History, witness: Witness): Promise<readonly string[]> {
  const { days, seed, rates, replicas } = drawn;
  const { checker, cluster, run, live } = await openShop(witness, { replicas });
  await run(...before);
  cluster.injectFaults(randomFaults(seed, rates, strikesOf(drawn, witness)));
  await cluster.until(live(days[0] ?? []));
  await cluster.settle();
  return checker.verdict();
}

export const meeting: HistoryKind = {
  arbitrary: histories(
    fc
      .array(fc.tuple(act, body), { minLength: 2, maxLength: 8 })
      .map((acts) => [acts.map(([operation, body], index) => [{ ...operation, ...named(operation, body, index) }])]),
    { calls: [0], deaths: [0], unfairness: [1, 4, 10], slowness: [0, 0.5, 2] },
  ),
  run,
};
