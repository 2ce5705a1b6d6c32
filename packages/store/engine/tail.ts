/**
 * The latest changes of a collection, kept once for all readers. A reader that falls behind them loses its place, so
 * their size is bounded however slow a reader is.
 */
import type { Change, Position } from "../port.ts";

/** Most bytes of BSON that the kept changes may take. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Changes that are handed out at once. */
const MAX_BATCH = 256;

export interface Tail<V> {
  /** After all changes that were added or skipped with `moveTo`. */
  readonly position: Position;
  /** Before all changes that are kept. */
  readonly base: Position;
  /** The number of the oldest change that is kept, and the one that the next will have. */
  readonly first: number;
  readonly end: number;
  add(change: Change<V>, bytes: number): void;
  /** Moves on to a position up to which nothing else is to be added. */
  moveTo(position: Position): void;
  /** Changes from that number on. Readers at the same place get the same array. */
  from(number: number): readonly Change<V>[];
  /** The number of the first change after a position that is not before the base. */
  numberAfter(position: Position): number;
  /** Forgets the changes. */
  clear(): void;
}

export function createTail<V>(start: Position): Tail<V> {
  let kept: { readonly change: Change<V>; readonly bytes: number }[] = [];
  /** How many entries at the beginning of `kept` are dropped already: they are cut off many at a time. */
  let gone = 0;
  let [first, bytes] = [0, 0];
  let position = start;
  let base = start;
  let handedOut: { readonly number: number; readonly end: number; readonly batch: readonly Change<V>[] } | undefined;

  function dropOldest(): void {
    const oldest = kept[gone++];
    if (!oldest) return;
    first++;
    bytes -= oldest.bytes;
    base = oldest.change.position;
    if (gone < 1024 || gone < kept.length / 2) return;
    kept = kept.slice(gone);
    gone = 0;
  }

  const tail: Tail<V> = {
    get position() {
      return position;
    },
    get base() {
      return base;
    },
    get first() {
      return first;
    },
    get end() {
      return first + kept.length - gone;
    },
    add(change, size) {
      kept.push({ change, bytes: size });
      bytes += size;
      position = change.position;
      while (bytes > MAX_BYTES && kept.length - gone > 1) dropOldest();
    },
    moveTo(to) {
      position = to;
      if (first === tail.end) base = to;
    },
    from(number) {
      const end = Math.min(tail.end, number + MAX_BATCH);
      if (handedOut?.number === number && handedOut.end === end) return handedOut.batch;
      const batch = Object.freeze(kept.slice(gone + number - first, gone + end - first).map(({ change }) => change));
      handedOut = { number, end, batch };
      return batch;
    },
    numberAfter(place) {
      let number = tail.end;
      while (number > first && (kept[gone + number - 1 - first]?.change.position ?? "") > place) number--;
      return number;
    },
    clear() {
      first = tail.end;
      kept = [];
      [gone, bytes] = [0, 0];
      base = position;
      handedOut = undefined;
    },
  };
  return tail;
}
