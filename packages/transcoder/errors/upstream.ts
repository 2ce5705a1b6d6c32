import type { Operation } from "../contract/operations.ts";

/**
 * A call to a service that did not end with an answer that can be passed on: it failed, or its answer makes no sense.
 * The cause tells more, and is not public.
 */
export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  readonly operation: Operation;

  constructor(operation: Operation, cause: unknown) {
    super(`${operation.method} failed`, { cause });
    this.operation = operation;
  }
}
