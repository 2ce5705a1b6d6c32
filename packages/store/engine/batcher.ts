/**
 * How the engines gather what is asked of them: what is asked for in one tick of the event loop is handed over at the tick's
 * end, in batches of one key. Batches of one key follow one another: what is asked for while one is under way waits for the
 * next.
 */

/** Does a batch, in the order asked, and returns those that did not get their turn: they begin the next. Never rejects. */
export type Process<K, T> = (key: K, batch: readonly T[]) => readonly T[] | Promise<readonly T[]>;

export function createBatcher<K, T>(process: Process<K, T>, maxBatch = Number.POSITIVE_INFINITY) {
  const queues = new Map<K, T[]>();

  async function flush(key: K, queue: T[]): Promise<void> {
    const rest = await process(key, queue.splice(0, maxBatch));
    if (rest.length > 0) queue.unshift(...rest);
    if (queue.length > 0) setImmediate(flush, key, queue);
    else queues.delete(key);
  }

  return (key: K, item: T): void => {
    const queue = queues.get(key);
    if (queue) return void queue.push(item);
    const opened = [item];
    queues.set(key, opened);
    setImmediate(flush, key, opened);
  };
}
