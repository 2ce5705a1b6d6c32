/** What the store's failures mean to whoever called a service. */
import type { StoreFailure } from "@petstore/rpc/errors/translate";
import { Corrupt, Overloaded, Unavailable } from "@petstore/store/port";

/** Undefined for what is no failure of the store. */
export function storeFailureOf(thrown: unknown): StoreFailure | undefined {
  if (thrown instanceof Overloaded) return "overloaded";
  if (thrown instanceof Unavailable) return thrown.inDoubt ? "in doubt" : "unreachable";
  return thrown instanceof Corrupt ? "corrupt" : undefined;
}
