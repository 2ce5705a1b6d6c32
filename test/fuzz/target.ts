import type fc from "fast-check";
import type { ProcessName } from "../../config.ts";
import type { Subject } from "./subject.ts";

/** What was done to the petstore. */
export interface Sent {
  readonly to: ProcessName;
  readonly bytes: number;
  /** Every request was answered: nothing is done for it any more. */
  readonly isAnswered: boolean;
  /** And refused: nothing may have changed. */
  readonly isRefused: boolean;
  /** It asked for changes. */
  readonly writes: boolean;
}

interface Common<C> {
  readonly name: string;
  readonly about: string;
  /** A case is plain data: what its file holds is what is sent, whichever version made it. */
  readonly cases: fc.Arbitrary<C>;
}

/** Something to send to the petstore. `send` judges the answers as well, and throws a Find. */
export interface RemoteTarget<C> extends Common<C> {
  readonly send: (one: C, subject: Subject) => Promise<Sent>;
}

/** Functions of this process that read text from outside. `call` gives how many bytes they had to read, or throws a Find. */
export interface LocalTarget<C> extends Common<C> {
  readonly call: (one: C) => Promise<number> | number;
}

export type Target<C = never> = RemoteTarget<C> | LocalTarget<C>;
