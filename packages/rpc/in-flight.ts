/**
 * Calls that have begun and not ended, by numbers that are used again.
 *
 * An array and no Map: each time that V8 makes room in a Map or a Set, what it held before points to what it holds now.
 * Once the first of these is old, nothing that was ever in a later one is collected before a full collection, and each call
 * is copied twice until then.
 */
export class InFlight<T> {
  #slots: (T | undefined)[] = [];
  #free: number[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Gives it a number, from 1 on, that none of the others has. */
  add(one: T): number {
    const slot = this.#free.pop() ?? this.#slots.length;
    this.#slots[slot] = one;
    this.#size++;
    return slot + 1;
  }

  /** Takes out the one of this number, if there is one. */
  take(number: number): T | undefined {
    const slot = number - 1;
    const one = this.#slots[slot];
    if (one === undefined) return undefined;
    this.#slots[slot] = undefined;
    this.#free.push(slot);
    this.#size--;
    return one;
  }

  /** Those that are under way. */
  all(): T[] {
    return this.#slots.filter((one) => one !== undefined);
  }
}
