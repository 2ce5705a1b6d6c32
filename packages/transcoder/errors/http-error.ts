import type { Operation } from "../contract/operation.ts";

/** One field of a request that is wrong. */
export interface FieldViolation {
  /** Where it is: "book.tags[1]", the name of a parameter, or that of a header. */
  readonly field: string;
  /** What is wrong with it, such as "must be an integer". */
  readonly description: string;
}

/**
 * A request that can't be served as it was sent. The code says what is wrong for programs, such as INVALID_QUERY; the message
 * is public and says what is wrong and where.
 */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly code: string;
  /** Sent with the answer, such as Allow on a 405. */
  readonly headers: Readonly<Record<string, string>>;
  /** Without a catalogue of errors: the HTTP status. By default that of the code, if the transcoder or gRPC has it, or 500. */
  readonly status: number | undefined;
  /** The same fault in a form for programs, where its place is known. */
  readonly violations: readonly FieldViolation[];

  constructor(
    code: string,
    message: string,
    headers: Readonly<Record<string, string>> = {},
    status?: number,
    violations: readonly FieldViolation[] = [],
  ) {
    super(message);
    this.code = code;
    this.headers = headers;
    this.status = status;
    this.violations = violations;
  }
}

/** For a fault in one field. The message is "limit: must be an integer". */
export const fieldError = (code: string, field: string, description: string): HttpError =>
  new HttpError(code, `${field}: ${description}`, {}, undefined, [{ field, description }]);

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
