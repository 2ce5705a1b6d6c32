/** One timer shared by all waiters, each with a time of its own. There may be a thousand, and most never reach their time. */
import type { Runtime } from "@petstore/runtime/clock";

export interface Waiter {
  /** On the clock, in milliseconds. */
  dueAt: number;
  wake: () => void;
}

export interface SharedTimer {
  /** Wakes the waiter once, when it is due. Its `dueAt` may be moved on meanwhile. */
  wait(waiter: Waiter): void;
  leave(waiter: Waiter): void;
}

export function createSharedTimer({ clock, sleep }: Pick<Runtime, "clock" | "sleep">): SharedTimer {
  const waiters = new Set<Waiter>();
  let timer: { readonly at: number; readonly stop: AbortController } | undefined;

  function set(at: number): void {
    timer?.stop.abort();
    timer = undefined;
    if (at === Number.POSITIVE_INFINITY) return;
    const stop = new AbortController();
    timer = { at, stop };
    sleep(Math.max(0, at - clock()), stop.signal).then(ring, () => {}); // an aborted sleep rejects
  }

  function ring(): void {
    const now = clock();
    let next = Number.POSITIVE_INFINITY;
    for (const waiter of waiters) {
      if (waiter.dueAt > now) next = Math.min(next, waiter.dueAt);
      else {
        waiters.delete(waiter);
        waiter.wake();
      }
    }
    set(next);
  }

  return {
    wait(waiter) {
      waiters.add(waiter);
      if (!timer || waiter.dueAt < timer.at) set(waiter.dueAt);
    },
    leave(waiter) {
      if (waiters.delete(waiter) && waiters.size === 0) set(Number.POSITIVE_INFINITY);
    },
  };
}
