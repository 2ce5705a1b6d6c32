/**
 * How long a service keeps idempotency keys, tombstones and change events. In a file of its own, so that reading the
 * configuration does not load the code that removes them.
 */

/** How long something is kept, in milliseconds: `ageMs` at least, and a period or two more at most. */
export interface Age {
  readonly ageMs: number;
  readonly periodMs: number;
}

export interface Retention {
  /** What outlives its request and is relied on: idempotency keys, and what is known of other services' records. */
  readonly keys: Age;
  /** Tombstones. They must far outlive what they guard against: keys, requests and messages under way. */
  readonly tombstones: Age;
  /** Change events, kept at least this many milliseconds for readers that resume. EVENTS_RETENTION overrides it. */
  readonly eventsMs: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const RETENTION: Retention = {
  keys: { ageMs: DAY_MS, periodMs: HOUR_MS },
  tombstones: { ageMs: 7 * DAY_MS, periodMs: DAY_MS },
  eventsMs: DAY_MS,
};
