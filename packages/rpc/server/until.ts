/**
 * What an iterable yields before the signal aborts; the error from then on, also when the iterable never answers. The
 * iterable is told at once that no more is wanted, be it that nobody has taken its last item yet, but not waited for.
 */
export async function* until<T>(
  signal: AbortSignal,
  items: AsyncIterable<T>,
  error: () => Error,
): AsyncGenerator<T, void> {
  const iterator = items[Symbol.asyncIterator]();
  // One listener for all steps: a promise that every step races with would remember each of them.
  let reject = (_: Error) => {};
  const stop = () => {
    reject(error());
    leave(iterator);
  };
  signal.addEventListener("abort", stop, { once: true });
  try {
    for (;;) {
      const next = await new Promise<IteratorResult<T>>((resolve, fail) => {
        reject = fail;
        if (signal.aborted) stop();
        else iterator.next().then(resolve, fail);
      });
      if (next.done) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", stop);
    leave(iterator);
  }
}

/** Calls when the signal aborts, at once if it has. */
export function onAbort(signal: AbortSignal, call: () => void): void {
  if (signal.aborted) call();
  else signal.addEventListener("abort", call, { once: true });
}

/** Says that no more is wanted, and waits for nothing. */
export const leave = (iterator: AsyncIterator<unknown>): void => void iterator.return?.().then(undefined, () => {});

/**
 * The same items, of which no more are wanted once the signal aborts, be it that nobody asks for the next one any more.
 * Connect's writer (2.2) waits forever for a reader that goes away while something waits for it.
 */
export function endedBy<T>(signal: AbortSignal, items: AsyncIterable<T>): AsyncIterable<T> {
  const iterator = items[Symbol.asyncIterator]();
  signal.addEventListener("abort", () => leave(iterator), { once: true });
  return { [Symbol.asyncIterator]: () => iterator };
}
