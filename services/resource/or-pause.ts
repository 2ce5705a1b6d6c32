/** Waiting for the next item, but not longer than until something else is due. */
import type { Runtime } from "@petstore/runtime/clock";

/**
 * The items as they come, and `undefined` whenever `dueAt` has passed while it waited for one. `dueAt` is asked anew each time
 * (milliseconds on the clock), so a time that moves on with every item costs no timer for each. The items have to end, or to
 * answer, when the signal aborts; then no timer is left either.
 */
export async function* orPause<T>(
  items: AsyncIterable<T>,
  dueAt: () => number,
  { clock, sleep }: Pick<Runtime, "clock" | "sleep">,
  signal: AbortSignal,
): AsyncGenerator<T | undefined, void> {
  const iterator = items[Symbol.asyncIterator]();
  let wake = () => {};
  let came: (() => IteratorResult<T>) | undefined;
  let [isAsked, isSleeping] = [false, false];

  /** Not a race of promises: one that stays open would remember each race that it was in. */
  function ask(): void {
    isAsked = true;
    const arrive = (result: () => IteratorResult<T>) => {
      came = result;
      wake();
    };
    iterator.next().then(
      (result) => arrive(() => result),
      (error: unknown) =>
        arrive(() => {
          throw error;
        }),
    );
  }
  function sleepUntilDue(): void {
    isSleeping = true;
    const wakeUp = () => {
      isSleeping = false;
      wake();
    };
    // An aborted sleep rejects; what is waited for ends then by itself.
    sleep(Math.max(0, dueAt() - clock()), signal).then(wakeUp, () => {});
  }

  try {
    for (;;) {
      if (!isAsked) ask();
      // Also when something is due already: an item that is there is told by a promise, and comes first.
      if (!came)
        do {
          if (!isSleeping) sleepUntilDue();
          await new Promise<void>((resolve) => (wake = resolve));
        } while (!came && clock() < dueAt());
      if (!came) {
        yield undefined;
        continue;
      }
      const { done, value } = came();
      [came, isAsked] = [undefined, false];
      if (done) return;
      yield value;
    }
  } finally {
    if (!isAsked) await iterator.return?.();
  }
}
