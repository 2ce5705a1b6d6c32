/**
 * Waiting for the next item of an iterable, but only until a given time. One timer is shared by all that wait: there may be a
 * thousand, and most never reach their time.
 */

import { leave } from "@petstore/rpc/server/until";
import type { Runtime } from "@petstore/runtime/clock";

interface Waiter {
  /** On the clock, in milliseconds. */
  dueAt: number;
  wake: () => void;
}

type SharedTimer = ReturnType<typeof createSharedTimer>;

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

export function nextOrTimeout<T>(items: AsyncIterable<T>, timer: SharedTimer) {
  const iterator = items[Symbol.asyncIterator]();
  const waiter: Waiter = { dueAt: 0, wake() {} };
  /** The read of the next item; it stays open across timeouts. */
  let asked: Promise<IteratorResult<T, unknown>> | undefined;
  let isThere = false;
  const come = () => {
    isThere = true;
    waiter.wake();
  };

  return {
    /** The next item, or `undefined` if the clock reaches `dueAt` (milliseconds) first. */
    next: (dueAt: number): Promise<IteratorResult<T, unknown> | undefined> =>
      // No Promise.race: a promise that stays pending would remember each race that it was in.
      new Promise((resolve) => {
        waiter.wake = () => {
          waiter.wake = () => {};
          resolve(isThere ? asked : undefined);
          if (isThere) asked = undefined;
        };
        if (!asked) {
          isThere = false;
          asked = iterator.next();
          asked.then(come, come);
        }
        if (isThere) return waiter.wake();
        // Even if it is due already: a ready item arrives by a promise and takes precedence.
        waiter.dueAt = dueAt;
        timer.wait(waiter);
      }),
    /**
     * Ends the waiting. While an item is still being awaited, the iterator is not closed: its source must learn of the end
     * in another way.
     */
    leave(): void {
      timer.leave(waiter);
      if (!asked) leave(iterator);
    },
  };
}
