import type fc from "fast-check";
import type { ProcessName } from "../../processes/names.ts";
import type { Subject } from "./subject.ts";

/** What a case has sent to the petstore. */
export interface Sent {
  readonly to: ProcessName;
  readonly bytes: number;
  /** Every request was answered, so no work for it remains. */
  readonly isAnswered: boolean;
  /** Every request was refused, so nothing may have changed. */
  readonly isRefused: boolean;
  /** It contained requests for changes. */
  readonly writes: boolean;
}

interface Common<C> {
  readonly name: string;
  readonly about: string;
  /** A case is plain data: its file determines what is sent, whichever version made it. */
  readonly cases: fc.Arbitrary<C>;
}

/** A target that sends cases to the petstore. `send` also checks the answers, and throws a Find. */
export interface RemoteTarget<C> extends Common<C> {
  readonly send: (one: C, subject: Subject) => Promise<Sent>;
}

/**
 * A target that calls functions in this process that read text from outside. `call` returns how many bytes they read, or
 * throws a Find.
 */
export interface LocalTarget<C> extends Common<C> {
  readonly call: (one: C) => Promise<number> | number;
}

export type Target<C = never> = RemoteTarget<C> | LocalTarget<C>;
