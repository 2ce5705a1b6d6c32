/** Time, chance and the log: what a process hands to whatever it builds. */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";

/** Whole milliseconds since 1970 that never run backwards within a process. They schedule work and expire keys, no more. */
export type Clock = () => number;

/**
 * Nothing below an entry file reads a clock, rolls dice or sets a timer by itself, so that a test or a simulation can
 * stand in for all of them.
 */
export interface Runtime {
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Resolves after so many milliseconds, or rejects when the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly log: Logger;
}

/** Beside a `Runtime`, for what judges instants of others. */
export interface WallTime {
  readonly wallClock: () => number;
}

// Whole milliseconds: they are stored in documents and sent as timeouts, where fractions are not allowed.
const clock: Clock = () => Math.floor(performance.timeOrigin + performance.now());

/**
 * Milliseconds since 1970 as the system has them: they may run backwards, and go on while the machine sleeps. For people to
 * read, and to compare with an instant that somebody else has written down.
 */
export const wallClock = (): number => Date.now();

const sleep: Runtime["sleep"] = (ms, signal) => delay(ms, undefined, { signal });

/** Real time and chance, for entry files. */
export const realTime = { clock, wallClock, random: Math.random, sleep } satisfies Partial<Runtime> & WallTime;
