import { MOST_NESTED } from "../contract/codec.ts";

type SchemaErrorCode = "VALIDATION_FAILED" | "UNKNOWN_FIELD" | "MALFORMED_JSON";

/** A value that its field does not allow. On the way up, each value that contains it adds its own step to the path. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
  readonly code: SchemaErrorCode;
  #path = "";

  /** `problem` completes a sentence that begins with the field's name: "must be an integer". */
  constructor(problem: string, code: SchemaErrorCode = "VALIDATION_FAILED") {
    super(problem);
    this.code = code;
  }

  /** "categoryId: must be an integer", or "The body must be an object" where no step leads to the value. */
  get sentence(): string {
    return this.#path === "" ? `The body ${this.message}` : `${this.#path}: ${this.message}`;
  }

  /** Where the value is; empty where no step leads to it. */
  get path(): string {
    return this.#path;
  }

  under(step: string): this {
    this.#path = this.#path === "" || this.#path.startsWith("[") ? step + this.#path : `${step}.${this.#path}`;
    return this;
  }
}

/** Runs `read`; an error in it is told as one under `step`, a member's name or an index in brackets. */
export function under<T>(step: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof SchemaError ? error.under(step) : error;
  }
}

export const tooDeep = () =>
  new SchemaError(`is nested too deeply: no more than ${MOST_NESTED} messages may be within one another`);

/** What is wrong with a name of a field that is also given by another of its names. */
export const givenAs = (other: string): string => `is another name of ${other}, which is given too`;
