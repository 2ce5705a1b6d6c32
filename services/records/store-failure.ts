/** What failures of the store mean: for the callers of a service, and for whether it is ready. */
import type { StoreFailure } from "@petstore/rpc/errors";
import { Corrupt, Full, Overloaded, type Store, Unavailable } from "@petstore/store/port";
import type { Deps } from "./module.ts";

/** How long a service waits for its store to know whether it is ready, in milliseconds. */
const PATIENCE_MS = 1_000;

/** Undefined for any other error. */
export function storeFailureOf(thrown: unknown): StoreFailure | undefined {
  if (thrown instanceof Overloaded) return "overloaded";
  if (thrown instanceof Full) return "full";
  if (thrown instanceof Unavailable) return thrown.inDoubt ? "in doubt" : "unreachable";
  return thrown instanceof Corrupt ? "corrupt" : undefined;
}

/**
 * Whether the store answers in time. Other services are not asked: they call each other in both directions, and would
 * wait for one another.
 */
export async function canServe(
  store: Pick<Store, "ping">,
  { clock, sleep }: Pick<Deps, "clock" | "sleep">,
): Promise<boolean> {
  const over = new AbortController();
  const answer = store.ping({ deadline: clock() + PATIENCE_MS }).then(() => true);
  // The store may wait for a disk that hangs.
  const late = sleep(PATIENCE_MS, over.signal).then(() => false);
  return Promise.race([answer, late])
    .catch(() => false)
    .finally(() => over.abort());
}
