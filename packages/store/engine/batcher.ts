/**
 * How the engines gather what is asked of them: what is asked for in one tick of the event loop is handed over at the tick's
 * end, in batches of one key. Of one key so many are under way at once, by default one: what is asked for meanwhile waits for
 * the next. Who is alone, as the one before was, does not wait for the tick's end.
 */
import { nextTick } from "node:process";

/** Does a batch, in the order asked, and returns those that did not get their turn: they begin the next. Never rejects. */
export type Process<K, T> = (key: K, batch: readonly T[]) => readonly T[] | Promise<readonly T[]>;

interface Queue<T> {
  readonly items: T[];
  underWay: number;
  /** A batch is about to be taken. */
  isDue: boolean;
}

/** `maxBatch` items in one batch, and `maxUnderWay` batches of one key at once. */
export function createBatcher<K, T>(process: Process<K, T>, maxBatch = Number.POSITIVE_INFINITY, maxUnderWay = 1) {
  let queues = new Map<K, Queue<T>>();
  /** How many were handed over together last. */
  let together = 0;

  async function flush(key: K, queue: Queue<T>): Promise<void> {
    together = queue.items.length;
    const batch = queue.items.splice(0, maxBatch);
    queue.isDue = false;
    queue.underWay++;
    next(key, queue);
    const rest = await process(key, batch);
    queue.underWay--;
    if (rest.length > 0) queue.items.unshift(...rest);
    next(key, queue);
    if (queue.underWay === 0 && !queue.isDue) forget(key);
  }

  function next(key: K, queue: Queue<T>, isAlone = false): void {
    if (queue.isDue || queue.items.length === 0 || queue.underWay >= maxUnderWay) return;
    queue.isDue = true;
    if (isAlone) nextTick(flush, key, queue);
    else setImmediate(flush, key, queue);
  }

  /** An empty Map makes way for a new one: each time that V8 makes room in one, what it held keeps alive what it will hold. */
  function forget(key: K): void {
    queues.delete(key);
    if (queues.size === 0) queues = new Map();
  }

  return (key: K, item: T): void => {
    const isAlone = together === 1 && queues.size === 0;
    const queue = queues.get(key) ?? { items: [], underWay: 0, isDue: false };
    queues.set(key, queue);
    queue.items.push(item);
    next(key, queue, isAlone);
  };
}
