/**
 * Calls that have begun and not ended, by numbers that are reused.
 *
 * An array, not a Map: each time that V8 resizes a Map or a Set, its old table points to the new one. Once the first of these
 * tables is in the old generation, nothing that was ever in a later one is freed before a full garbage collection, and each
 * call is copied twice until then.
 */
export class InFlight<T> {
  #slots: (T | undefined)[] = [];
  #free: number[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds a call, and returns its number: 1 or more, and different from that of every other call in here. */
  add(one: T): number {
    const slot = this.#free.pop() ?? this.#slots.length;
    this.#slots[slot] = one;
    this.#size++;
    return slot + 1;
  }

  /** Removes and returns the call with this number, if there is one. */
  take(number: number): T | undefined {
    const slot = number - 1;
    const one = this.#slots[slot];
    if (one === undefined) return undefined;
    this.#slots[slot] = undefined;
    this.#free.push(slot);
    this.#size--;
    return one;
  }

  /** All calls that have not ended. */
  all(): T[] {
    return this.#slots.filter((one) => one !== undefined);
  }
}
