/** Waiting for the next item, but not longer than until something else is due. */
import { leave } from "@petstore/rpc/server/until";
import type { SharedTimer, Waiter } from "./shared-timer.ts";

export interface NextOrTimeout<T> {
  /** The next item, or `undefined` when that time has come before (milliseconds on the clock). */
  next(dueAt: number): Promise<IteratorResult<T, unknown> | undefined>;
  /** No more is wanted. An item that was asked for is not waited for: whoever makes it is told in another way. */
  leave(): void;
}

export function nextOrTimeout<T>(items: AsyncIterable<T>, timer: SharedTimer): NextOrTimeout<T> {
  const iterator = items[Symbol.asyncIterator]();
  const waiter: Waiter = { dueAt: 0, wake() {} };
  /** It stays open over the timeouts. */
  let asked: Promise<IteratorResult<T, unknown>> | undefined;
  let isThere = false;
  const come = () => {
    isThere = true;
    waiter.wake();
  };

  return {
    next: (dueAt) =>
      // Not a race of promises: one that stays open would remember each race that it was in.
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
        // Also when it is due already: an item that is there is told by a promise, and comes first.
        waiter.dueAt = dueAt;
        timer.wait(waiter);
      }),
    leave() {
      timer.leave(waiter);
      if (!asked) leave(iterator);
    },
  };
}
