/**
 * What an iterable yields before the signal aborts; the error from then on, also when the iterable never answers. The
 * iterable is told that no more is wanted, but not waited for.
 */
export async function* until<T>(
  signal: AbortSignal,
  items: AsyncIterable<T>,
  error: () => Error,
): AsyncGenerator<T, void> {
  const iterator = items[Symbol.asyncIterator]();
  // One listener for all steps: a promise that every step races with would remember each of them.
  let reject = (_: Error) => {};
  const stop = () => reject(error());
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
    iterator.return?.().then(undefined, () => {});
  }
}
