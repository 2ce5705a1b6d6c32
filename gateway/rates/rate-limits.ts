/** Remembers how much each caller has sent, in bounded memory. */
import type { Runtime } from "@petstore/runtime/clock";
import { judge, type Rate, type Used, type Verdict } from "@petstore/runtime/rate";

export type RateLimits = ReturnType<typeof createRateLimits>;

/** How many callers are remembered at most. Those who were silent for longest are forgotten. */
const MAX_CALLERS = 100_000;

/** `rate` applies to callers without a rate of their own; if it is undefined, these are not limited. */
export function createRateLimits(
  rate: Rate | undefined,
  { clock, maxCallers = MAX_CALLERS }: Pick<Runtime, "clock"> & { readonly maxCallers?: number },
) {
  const all = createLatest<Used>(maxCallers);
  /** Judges as `count` does, but counts nothing. */
  const peek = (caller: string, own = rate): Verdict | undefined => own && judge(own, all.get(caller), clock());
  return {
    peek,
    /** Counts a request of a caller, unless it is beyond the caller's rate. Returns undefined if the caller has no rate. */
    count(caller: string, own?: Rate): Verdict | undefined {
      const verdict = peek(caller, own);
      if (verdict?.allowed) all.set(caller, verdict.used);
      return verdict;
    },
  };
}

/**
 * Remembers `max` keys at most, and always the last `max / 2` that were set. They are forgotten by the half, at once: to find
 * the oldest key of a Map, V8 walks over all that were deleted before it, for each key that is set.
 */
export function createLatest<V>(max: number) {
  let newer = new Map<string, V>();
  let older = new Map<string, V>();
  return {
    get: (key: string) => newer.get(key) ?? older.get(key),
    set(key: string, value: V): void {
      newer.set(key, value);
      if (newer.size < max / 2) return;
      older = newer;
      newer = new Map();
    },
    delete(key: string): void {
      newer.delete(key);
      older.delete(key);
    },
  };
}
