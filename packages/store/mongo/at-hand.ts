/** Numbers of a sequence that this process has taken and not given yet. */

/** How long a number may be at hand before it is asked whether others have given higher ones meanwhile, in milliseconds. */
const FRESH_MS = 10_000;

/** Numbers that follow one another. */
interface Range {
  next: number;
  last: number;
  /** When the first of them was taken. */
  readonly since: number;
}

export type AtHand = ReturnType<typeof numbersAtHand>;

export function numbersAtHand() {
  /** From the lowest to the highest. Between two of them others have taken numbers. */
  let ranges: Range[] = [];
  let highest = 0;
  return {
    /** The highest number that was taken, or that is known to be in use: what is taken now is above it. */
    get highest() {
      return highest;
    },
    get count() {
      return ranges.reduce((count, { next, last }) => count + last - next + 1, 0);
    },
    isOld: (now: number) => ranges[0] !== undefined && now - ranges[0].since >= FRESH_MS,
    /** The lowest; undefined if there is none. */
    give(): number | undefined {
      const [range] = ranges;
      if (!range) return undefined;
      const number = range.next++;
      if (number === range.last) ranges.shift();
      return number;
    },
    /** Adds the numbers that were taken: `count` of them, behind `before`. */
    add(before: number, count: number, now: number): void {
      // A higher number may have become known while these were taken.
      const next = Math.max(before, highest) + 1;
      const last = before + count;
      if (next > last) return;
      const newest = ranges.at(-1);
      if (newest?.last === next - 1) newest.last = last;
      else ranges.push({ next, last, since: now });
      highest = last;
    },
    /** Drops the numbers up to this one. */
    drop(upTo: number): void {
      highest = Math.max(highest, upTo);
      ranges = ranges.filter(({ last }) => last > upTo);
      for (const range of ranges) range.next = Math.max(range.next, upTo + 1);
    },
    /**
     * Keeps the numbers than which nobody can have given a higher one, because the counter still stands at the last of
     * them, and drops all others.
     */
    confirm(counter: number, now: number): void {
      const newest = ranges.at(-1);
      ranges = newest?.last === counter ? [{ ...newest, since: now }] : [];
    },
    /** The numbers that nobody misses if the counter still stands at the last of them. */
    newest: (): Readonly<Range> | undefined => ranges.at(-1),
  };
}
