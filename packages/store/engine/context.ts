/** Whole milliseconds since 1970 that never run backwards within a process. */
export type Clock = () => number;

interface Write {
  (fields: object, text: string): void;
  (text: string): void;
}

/** Where the store says what an operator should know: a logger such as pino's, or `console`. */
export type Log = Readonly<Record<"info" | "warn" | "error", Write>>;

/** Time, randomness and the log, passed to an engine so that a test or a simulation can replace them. */
export interface EngineContext {
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Resolves after so many milliseconds, or rejects when the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly log: Log;
}
