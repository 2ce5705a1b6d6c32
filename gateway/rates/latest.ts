/** What was remembered last, in bounded memory. */

export interface Latest<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): void;
}

/**
 * Remembers `max` keys at most, and always the last `max / 2` that were set. They are forgotten by the half, at once: to find
 * the oldest key of a Map, V8 walks over all that were deleted before it, for each key that is set.
 */
export function createLatest<V>(max: number): Latest<V> {
  let newer = new Map<string, V>();
  let older = new Map<string, V>();
  return {
    get: (key) => newer.get(key) ?? older.get(key),
    set(key, value) {
      newer.set(key, value);
      if (newer.size < max / 2) return;
      older = newer;
      newer = new Map();
    },
    delete(key) {
      newer.delete(key);
      older.delete(key);
    },
  };
}
