/** Remembers how much each caller has sent, in bounded memory. */
import type { Runtime } from "@petstore/runtime/clock";
import { judge, type Rate, type Used, type Verdict } from "@petstore/runtime/rate";
import { createLatest } from "./latest.ts";

export interface RateLimits {
  /** Counts a request of a caller, unless it is beyond the caller's rate. Returns undefined if the caller has no rate. */
  count(caller: string, own?: Rate): Verdict | undefined;
  /** Judges as `count` does, but counts nothing. */
  peek(caller: string, own?: Rate): Verdict | undefined;
}

/** How many callers are remembered at most. Those who were silent for longest are forgotten. */
const MAX_CALLERS = 100_000;

/** `rate` applies to callers without a rate of their own; if it is undefined, these are not limited. */
export function createRateLimits(
  rate: Rate | undefined,
  { clock, maxCallers = MAX_CALLERS }: Pick<Runtime, "clock"> & { readonly maxCallers?: number },
): RateLimits {
  const all = createLatest<Used>(maxCallers);
  const peek: RateLimits["peek"] = (caller, own = rate) => own && judge(own, all.get(caller), clock());
  return {
    peek,
    count(caller, own) {
      const verdict = peek(caller, own);
      if (verdict?.allowed) all.set(caller, verdict.used);
      return verdict;
    },
  };
}
