/**
 * Yields the items of an iterable until the signal aborts, and then throws the error, even if the iterable never answers. The
 * abort calls the iterator's `return` at once, even while the last item has not been taken, and does not wait for it.
 */
export async function* until<T>(
  signal: AbortSignal,
  items: AsyncIterable<T>,
  error: () => Error,
): AsyncGenerator<T, void> {
  const iterator = items[Symbol.asyncIterator]();
  // One listener for all steps: a promise that each step races with would keep a reference to every one of them.
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

/** Calls `call` when the signal aborts, at once if it already has. */
export function onAbort(signal: AbortSignal, call: () => void): void {
  if (signal.aborted) call();
  else signal.addEventListener("abort", call, { once: true });
}

/** Calls the iterator's `return` and waits for nothing. */
export const leave = (iterator: AsyncIterator<unknown>): void => void iterator.return?.().then(undefined, () => {});

/**
 * The same items, but the signal's abort calls the iterator's `return`, even if nobody asks for the next item any more.
 * Connect's writer (2.2) waits forever for a reader that goes away while an item waits for it.
 */
export function endedBy<T>(signal: AbortSignal, items: AsyncIterable<T>): AsyncIterable<T> {
  const iterator = items[Symbol.asyncIterator]();
  signal.addEventListener("abort", () => leave(iterator), { once: true });
  return { [Symbol.asyncIterator]: () => iterator };
}
