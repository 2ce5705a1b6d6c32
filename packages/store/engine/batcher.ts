/**
 * Batching for the engines. Items that are added in one tick of the event loop are processed at its end, in batches by
 * key. Of each key one batch is processed at a time; items added meanwhile wait for the next batch. A single item does not wait
 * for the end of the tick if the batch before was a single item, too.
 */
import { nextTick } from "node:process";

/** Who has added an item, and waits for what becomes of it. */
export interface Waiting<R> {
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

/** Processes a batch in order and returns the items that did not get their turn, for the next. Never rejects. */
export type Process<K, T> = (key: K, batch: readonly T[]) => readonly T[] | Promise<readonly T[]>;

interface Queue<T> {
  readonly items: T[];
  isUnderWay: boolean;
  isDue: boolean;
}

export function createBatcher<K, T extends object, R>(
  process: Process<K, T & Waiting<R>>,
  maxBatch = Number.POSITIVE_INFINITY,
) {
  let queues = new Map<K, Queue<T & Waiting<R>>>();
  /** How many items waited when the last batch was taken. */
  let together = 0;

  async function flush(key: K, queue: Queue<T & Waiting<R>>): Promise<void> {
    together = queue.items.length;
    const batch = queue.items.splice(0, maxBatch);
    queue.isDue = false;
    queue.isUnderWay = true;
    const rest = await process(key, batch);
    queue.isUnderWay = false;
    if (rest.length > 0) queue.items.unshift(...rest);
    if (queue.items.length === 0) forget(key);
    else next(key, queue);
  }

  function next(key: K, queue: Queue<T & Waiting<R>>, isAlone = false): void {
    if (queue.isDue || queue.isUnderWay) return;
    queue.isDue = true;
    if (isAlone) nextTick(flush, key, queue);
    else setImmediate(flush, key, queue);
  }

  /** An empty Map is replaced: when V8 grows one, the old table refers to the new one and keeps its entries alive. */
  function forget(key: K): void {
    queues.delete(key);
    if (queues.size === 0) queues = new Map();
  }

  return (key: K, item: T): Promise<R> => {
    const isAlone = together === 1 && queues.size === 0;
    const queue = queues.get(key) ?? { items: [], isUnderWay: false, isDue: false };
    queues.set(key, queue);
    const { promise, resolve, reject } = Promise.withResolvers<R>();
    queue.items.push({ ...item, resolve, reject });
    next(key, queue, isAlone);
    return promise;
  };
}
