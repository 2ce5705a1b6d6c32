/**
 * Rate limits: the generic cell rate algorithm (GCRA, ITU-T I.371, annex A). All that has to be remembered of a caller is
 * how far it is ahead of one that sends evenly. Pure.
 */
import { type Format, format } from "./environment.ts";

export interface Rate {
  /** Requests in each window, in the long run. */
  readonly requests: number;
  readonly windowMs: number;
  /** Most requests at once, after a pause. */
  readonly burst: number;
}

const windows = { s: 1000, min: 60_000, h: 3_600_000 };
const MAX_REQUESTS = 1_000_000;

/** A rate such as `600/min` or `600/min;burst=100`; without a burst, all requests of a window may come at once. */
export const rate: Format<Rate> = format(
  `a rate such as 600/min or 600/min;burst=100 (of s, min or h; each number from 1 to ${MAX_REQUESTS})`,
  (text) => {
    const [, requests = "", window = "", burst = requests] =
      /^(\d{1,7})\/(s|min|h)(?:;burst=(\d{1,7}))?$/.exec(text) ?? [];
    const windowMs = windows[window as keyof typeof windows];
    const numbers = { requests: Number(requests), burst: Number(burst) };
    const areInRange = Object.values(numbers).every((number) => number >= 1 && number <= MAX_REQUESTS);
    return windowMs !== undefined && areInRange ? { ...numbers, windowMs } : undefined;
  },
);

/** The state of a caller: the time that its requests had used up beyond `at`, in units of 1/`requests` ms. */
export interface Used {
  readonly at: number;
  /** A whole number, so that sums are exact. */
  readonly ahead: number;
}

/** What became of one request. Times are in milliseconds. */
export interface Verdict {
  readonly rate: Rate;
  readonly allowed: boolean;
  /** How many more would be allowed at once. */
  readonly remaining: number;
  /** Time until the whole burst is allowed again. */
  readonly resetMs: number;
  /** Time until the next request is allowed; 0 where this one is. */
  readonly retryMs: number;
  readonly used: Used;
}

/** Judges a request at `now`, in whole milliseconds. A refused request uses nothing up. */
export function judge(rate: Rate, used: Used | undefined, now: number): Verdict {
  const { requests, windowMs: interval, burst } = rate;
  const most = burst * interval;
  // No more than a burst: a caller's rate may have been lowered meanwhile.
  const before = used ? Math.min(Math.max(used.ahead - (now - used.at) * requests, 0), most) : 0;
  const allowed = before + interval <= most;
  const ahead = allowed ? before + interval : before;
  return {
    rate,
    allowed,
    remaining: Math.floor((most - ahead) / interval),
    resetMs: ahead / requests,
    retryMs: allowed ? 0 : (before + interval - most) / requests,
    used: { at: now, ahead },
  };
}
