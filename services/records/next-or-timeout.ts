/** Waiting for the next item of an iterable, but only until a given time. */
import { leave } from "@petstore/rpc/server/until";
import type { SharedTimer, Waiter } from "./shared-timer.ts";

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
