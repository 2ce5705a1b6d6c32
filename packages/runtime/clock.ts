/** Time, randomness and the log, which a process passes to everything that it builds. */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";

/** Whole milliseconds since 1970 that never run backwards within a process. For deadlines, schedules and expiry. */
export type Clock = () => number;

/** What an entry file builds takes time, randomness and pauses from here, so that a test can replace them. */
export interface Runtime {
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Resolves after so many milliseconds, or rejects when the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly log: Logger;
}

/** In addition to a `Runtime`, for code that compares with times that were recorded elsewhere. */
export interface WallTime {
  readonly wallClock: () => number;
}

// Whole milliseconds: they are stored in documents and sent as timeouts, where fractions are not allowed.
const clock: Clock = () => Math.floor(performance.timeOrigin + performance.now());

/** Milliseconds since the process began, with their fractions: to measure how long something takes. */
export const stopwatch = (): number => performance.now();

/**
 * The system's time in milliseconds since 1970. It may run backwards, and goes on while the machine sleeps. For people to
 * read, and to compare with a time that was recorded elsewhere.
 */
export const wallClock = (): number => Date.now();

const sleep: Runtime["sleep"] = (ms, signal) => delay(ms, undefined, { signal });

/** Real time and randomness, for entry files. */
export const realTime = { clock, wallClock, random: Math.random, sleep } satisfies Partial<Runtime> & WallTime;
