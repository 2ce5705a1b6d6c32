/** Remembers how much each caller has sent, in bounded memory. */
import type { Runtime } from "@petstore/runtime/clock";
import { judge, type Rate, type Used, type Verdict } from "@petstore/runtime/rate";

export interface RateLimits {
  /** Counts a request of a caller, unless it is beyond the caller's rate. Returns undefined if the caller has no rate. */
  count(caller: string, own?: Rate): Verdict | undefined;
  /** Judges as `count` does, but counts nothing. */
  peek(caller: string, own?: Rate): Verdict | undefined;
}

/** How many callers are remembered. Beyond it, the caller whose last counted request is oldest is forgotten. */
const MAX_CALLERS = 100_000;

/** `rate` applies to callers without a rate of their own; if it is undefined, these are not limited. */
export function createRateLimits(
  rate: Rate | undefined,
  { clock, maxCallers = MAX_CALLERS }: Pick<Runtime, "clock"> & { readonly maxCallers?: number },
): RateLimits {
  /** Ordered by each caller's last counted request. */
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
