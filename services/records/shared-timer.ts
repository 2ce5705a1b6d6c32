/** One timer shared by all waiters, each with a time of its own. There may be a thousand, and most never reach their time. */
import type { Runtime } from "@petstore/runtime/clock";

export interface Waiter {
  /** On the clock, in milliseconds. */
  dueAt: number;
  wake: () => void;
}

export type SharedTimer = ReturnType<typeof createSharedTimer>;

export function createSharedTimer({ clock, sleep }: Pick<Runtime, "clock" | "sleep">) {
  const waiters = new Set<Waiter>();
  /** When it rings, if anybody waits. */
  let at = Number.POSITIVE_INFINITY;
  let stop = new AbortController();

  function set(): void {
    stop.abort();
    stop = new AbortController();
    at = Number.POSITIVE_INFINITY;
    for (const { dueAt } of waiters) at = Math.min(at, dueAt);
    if (waiters.size === 0) return;
    sleep(Math.max(0, at - clock()), stop.signal).then(ring, () => {}); // an aborted sleep rejects
  }

  function ring(): void {
    const now = clock();
    for (const waiter of waiters) if (waiter.dueAt <= now && waiters.delete(waiter)) waiter.wake();
    set();
  }

  return {
    /** Wakes the waiter once, when it is due. Its `dueAt` may be moved on meanwhile. */
    wait(waiter: Waiter): void {
      waiters.add(waiter);
      if (waiter.dueAt < at) set();
    },
    leave(waiter: Waiter): void {
      if (waiters.delete(waiter) && waiters.size === 0) set();
    },
  };
}
