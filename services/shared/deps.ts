import type { Logger } from "pino";
import type { Retention } from "./expiry.ts";
import type { Store } from "./store/port.ts";

/** Whole milliseconds since 1970 that never run backwards within a process. They schedule work and expire keys, no more. */
export type Clock = () => number;

/**
 * What a service is built from besides its peers. Nothing below an entry file reads a clock, rolls dice or sets a timer
 * by itself, so that a test or a simulation can stand in for all of them.
 */
export interface Deps {
  readonly store: Store;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Resolves after so many milliseconds, or rejects when the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly log: Logger;
  /** How long what is over is kept. */
  readonly retention: Retention;
  /** Stands between every two steps of an operation that a crash may interrupt. Does nothing in production. */
  readonly point: (name: string) => void | Promise<void>;
}
