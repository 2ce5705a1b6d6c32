/**
 * How the engines gather what is asked of them: what is asked for in one tick of the event loop is handed over at the tick's
 * end, in batches of one key. Batches of one key follow one another: what is asked for while one is under way waits for the
 * next. Who is alone, as the one before was, does not wait for the tick's end.
 */
import { nextTick } from "node:process";

/** Does a batch, in the order asked, and returns those that did not get their turn: they begin the next. Never rejects. */
export type Process<K, T> = (key: K, batch: readonly T[]) => readonly T[] | Promise<readonly T[]>;

export function createBatcher<K, T>(process: Process<K, T>, maxBatch = Number.POSITIVE_INFINITY) {
  let queues = new Map<K, T[]>();
  /** How many were handed over together last. */
  let together = 0;

  async function flush(key: K, queue: T[]): Promise<void> {
    together = queue.length;
    const rest = await process(key, queue.splice(0, maxBatch));
    if (rest.length > 0) queue.unshift(...rest);
    if (queue.length > 0) setImmediate(flush, key, queue);
    else forget(key);
  }

  /** An empty Map makes way for a new one: each time that V8 makes room in one, what it held keeps alive what it will hold. */
  function forget(key: K): void {
    queues.delete(key);
    if (queues.size === 0) queues = new Map();
  }

  return (key: K, item: T): void => {
    const queue = queues.get(key);
    if (queue) return void queue.push(item);
    const opened = [item];
    const isAlone = together === 1 && queues.size === 0;
    queues.set(key, opened);
    if (isAlone) nextTick(flush, key, opened);
    else setImmediate(flush, key, opened);
  };
}
