/**
 * Merges streams: yields each item as it arrives. It holds at most one item of each stream and requests the next one only
 * when that item has been taken. So streams that are ready take turns, and no stream gets ahead of the reader.
 *
 * It ends with the first stream that ends, and fails with the first that fails. The caller has to end the others.
 */
export async function* merge<T>(streams: Iterable<AsyncIterator<T>>): AsyncGenerator<T, void> {
  const ready: (() => { result: IteratorResult<T>; stream: AsyncIterator<T> })[] = [];
  let wake = () => {};
  const ask = (stream: AsyncIterator<T>) => {
    const arrive = (item: (typeof ready)[0]) => {
      ready.push(item);
      wake();
    };
    stream.next().then(
      (result) => arrive(() => ({ result, stream })),
      (error: unknown) =>
        arrive(() => {
          throw error;
        }),
    );
  };
  for (const stream of streams) ask(stream);
  for (;;) {
    const item = ready.shift();
    if (!item) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      continue;
    }
    const { result, stream } = item();
    if (result.done) return;
    yield result.value;
    ask(stream);
  }
}
