/**
 * The latest changes of a collection, kept once for all readers. A reader that falls behind them loses its place, so
 * their size is bounded however slow a reader is.
 */
import type { Change, Position } from "../port.ts";

/** Most bytes of BSON that the kept changes may take. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Changes that are handed out at once. */
const MAX_BATCH = 256;

export function createTail<V>(start: Position) {
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

  const tail = {
    /** After all changes that were added or skipped with `moveTo`. */
    get position() {
      return position;
    },
    /** Before all changes that are kept. */
    get base() {
      return base;
    },
    /** The number of the oldest change that is kept. */
    get first() {
      return first;
    },
    /** The number that the next change will have. */
    get end() {
      return first + kept.length - gone;
    },
    add(change: Change<V>, size: number) {
      kept.push({ change, bytes: size });
      bytes += size;
      position = change.position;
      while (bytes > MAX_BYTES && kept.length - gone > 1) dropOldest();
    },
    /** Moves on to a position up to which nothing else is to be added. */
    moveTo(to: Position) {
      position = to;
      if (first === tail.end) base = to;
    },
    /** Changes from that number on. Readers at the same place get the same array. */
    from(number: number): readonly Change<V>[] {
      const end = Math.min(tail.end, number + MAX_BATCH);
      if (handedOut?.number === number && handedOut.end === end) return handedOut.batch;
      const batch = Object.freeze(kept.slice(gone + number - first, gone + end - first).map(({ change }) => change));
      handedOut = { number, end, batch };
      return batch;
    },
    /** The number of the first change after a position that is not before the base. */
    numberAfter(place: Position): number {
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
