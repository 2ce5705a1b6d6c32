/** Translates failures of the store for the callers of a service. */
import type { StoreFailure } from "@petstore/rpc/errors";
import { Corrupt, Full, Overloaded, Unavailable } from "@petstore/store/port";

/** Undefined for any other error. */
export function storeFailureOf(thrown: unknown): StoreFailure | undefined {
  if (thrown instanceof Overloaded) return "overloaded";
  if (thrown instanceof Full) return "full";
  if (thrown instanceof Unavailable) return thrown.inDoubt ? "in doubt" : "unreachable";
  return thrown instanceof Corrupt ? "corrupt" : undefined;
}
