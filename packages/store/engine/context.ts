import type { Logger } from "pino";

/** Whole milliseconds since 1970 that never run backwards within a process. */
export type Clock = () => number;

/** Time, randomness and the log, passed to an engine so that a test or a simulation can replace them. */
export interface EngineContext {
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Resolves after so many milliseconds, or rejects when the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly log: Logger;
}
