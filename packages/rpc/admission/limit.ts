/**
 * How many calls may be under way at once: as many as can be without making each other wait for long. Found by measuring, as
 * Netflix' concurrency-limits (Gradient2) and Envoy's adaptive concurrency do. Pure.
 *
 * More calls at once bring more answers until something is used up: a processor, a disk. From there on each waits for the
 * others, and nothing is gained. So the delay of calls is compared with what they take when few are under way: where it is
 * some times that, fewer are let in, and else more, as long as more are asked for.
 */

/**
 * Where the limit begins, and again when nothing has been under way for a moment: what comes at once after a rest is no
 * overload yet.
 */
export const START_LIMIT = 200;
/** So few do no harm, whatever they take: nobody who calls alone is refused. */
export const MIN_LIMIT = 64;
/** Nothing that is measured is worth more: from here on it is memory that counts. */
export const MAX_LIMIT = 2_000;

/** With so few under way, itself included, a call is taken to wait for no other. */
export const CALM = 4;

/** Calls may take so many times as long as when few are under way. */
export const TOLERANCE = 2.5;

/** A call that takes less is as good as one that takes so long: a few milliseconds are no sign of anything. */
export const FLOOR_MS = 10;

/** One call counts for no more, so that a single one that was held up does not stand for all. */
const MAX_SLOWDOWN = 10;

/** Most that the limit falls by at a time: what one window shows may be a pause of the whole machine. */
const MIN_GRADIENT = 0.8;

/** How many times as long as when few are under way a call took. */
export const slowdown = (ms: number, calmMs: number): number =>
  Math.min(MAX_SLOWDOWN, Math.max(ms, FLOOR_MS) / Math.max(calmMs, FLOOR_MS));

export interface Measured {
  /** The mean of all calls that ended. */
  readonly slowdown: number;
  /** Most calls that were under way at once. */
  readonly peak: number;
}

/** The limit that follows from what was measured under one. Its root is added for what may come at once. */
export function nextLimit(limit: number, { slowdown, peak }: Measured): number {
  const gradient = Math.max(MIN_GRADIENT, Math.min(1, TOLERANCE / slowdown));
  const next = limit * gradient + Math.sqrt(limit);
  // What nobody has asked for was not tried either, beyond where a limit begins.
  const wanted = next > limit && peak < limit / 2 ? Math.max(limit, Math.min(next, START_LIMIT)) : next;
  return Math.max(MIN_LIMIT, Math.min(MAX_LIMIT, wanted));
}

/** Calls that a running median is made of: older ones count for nothing. */
export const MEMORY = 50;

/**
 * What calls take when few are under way: the median of late, which a single call that was held up changes but little. `calls`
 * is how many it was made of before.
 */
export const nextCalm = (calmMs: number, calls: number, ms: number): number =>
  calls === 0 ? Math.max(1, ms) : calmMs * (1 + Math.sign(ms - calmMs) / Math.min(MEMORY, calls + 1));
