import type { Logger } from "pino";

/** Whole milliseconds since 1970 that never run backwards within a process. */
export type Clock = () => number;

/** Time, chance and the log, handed to an engine so that a test or a simulation can stand in for them. */
export interface EngineContext {
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Resolves after so many milliseconds, or rejects when the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly log: Logger;
}
