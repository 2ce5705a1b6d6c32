/** Until when work is worth doing. Between processes only what remains is sent, never an instant: clocks differ. */
import type { Clock } from "@petstore/runtime/clock";

export interface Deadline {
  /** On the process's clock (milliseconds). Infinite where there is no limit. */
  readonly at: number;
  /** Milliseconds until then; negative afterwards. */
  remaining(): number;
  /** The time limit of a call that is made now: what remains, 1 at least; undefined where there is no limit. */
  timeoutMs(): number | undefined;
}

export const deadlineAt = (clock: Clock, at: number): Deadline => ({
  at,
  remaining: () => at - clock(),
  timeoutMs: () => (at === Number.POSITIVE_INFINITY ? undefined : Math.max(1, at - clock())),
});

/** So many milliseconds from now; without a limit if undefined. */
export const deadlineAfter = (clock: Clock, ms = Number.POSITIVE_INFINITY): Deadline => deadlineAt(clock, clock() + ms);
