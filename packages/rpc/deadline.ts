/** The time until which work is worth doing. Processes send each other the remaining time, never an instant: clocks differ. */
import type { Clock } from "@petstore/runtime/clock";

export interface Deadline {
  /** On the process's clock (milliseconds). Infinite if there is no limit. */
  readonly at: number;
  /** Milliseconds until the deadline; negative after it. */
  remaining(): number;
  /** The timeout of a call that is made now: the remaining milliseconds, at least 1; undefined if there is no limit. */
  timeoutMs(): number | undefined;
}

export const deadlineAt = (clock: Clock, at: number): Deadline => ({
  at,
  remaining: () => at - clock(),
  timeoutMs: () => (at === Number.POSITIVE_INFINITY ? undefined : Math.max(1, at - clock())),
});

/** The longest time that a timer of Node can be set to, about 25 days. Node fires a longer timer at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The deadline `ms` milliseconds from now; no limit if `ms` is undefined. */
export const deadlineAfter = (clock: Clock, ms = Number.POSITIVE_INFINITY): Deadline => deadlineAt(clock, clock() + ms);
