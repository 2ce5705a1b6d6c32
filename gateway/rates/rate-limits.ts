/** Remembers how much each caller has sent, in bounded memory. */
import type { Runtime } from "@petstore/runtime/clock";
import { judge, type Rate, type Used, type Verdict } from "@petstore/runtime/rate";

export interface RateLimits {
  /** Counts a request of a caller, unless it is beyond the caller's rate. Undefined when there is none. */
  count(caller: string, own?: Rate): Verdict | undefined;
  /** Judges as `count` does, and counts nothing. */
  peek(caller: string, own?: Rate): Verdict | undefined;
}

/** Of so many; beyond it, the one that was silent for longest is forgotten. */
export const MAX_CALLERS = 100_000;

/** `rate` is that of callers who have none of their own; without one these may send as much as they like. */
export function createRateLimits(
  rate: Rate | undefined,
  { clock, maxCallers = MAX_CALLERS }: Pick<Runtime, "clock"> & { readonly maxCallers?: number },
): RateLimits {
  /** In the order of their last request that was counted. */
  const all = new Map<string, Used>();
  const peek: RateLimits["peek"] = (caller, own = rate) => own && judge(own, all.get(caller), clock());
  return {
    peek,
    count(caller, own) {
      const verdict = peek(caller, own);
      if (!verdict?.allowed) return verdict;
      all.delete(caller);
      all.set(caller, verdict.used);
      if (all.size > maxCallers) {
        const [longest] = all.keys();
        all.delete(longest as string);
      }
      return verdict;
    },
  };
}
