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
  /** Headers of the answer, such as Allow on a 405. */
  readonly headers: Readonly<Record<string, string>>;
  /** Without a catalogue of errors: the HTTP status. By default that of the code, if the transcoder or gRPC has it, or 500. */
  readonly status: number | undefined;
  /** The fields that are wrong, where that is known. Sent as a google.rpc.BadRequest. */
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

/** For a fault in one message of a stream of requests. The first message is 1. */
export const inMessage = ({ code, message, headers, status, violations }: HttpError, number: number): HttpError =>
  new HttpError(code, `Message ${number}: ${message}`, headers, status, violations);

/**
 * A call to a service failed, or its answer can't be converted. The cause says why; callers see of it only what
 * `service-errors.ts` lets through.
 */
export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  readonly operation: Operation;

  constructor(operation: Operation, cause: unknown) {
    super(`${operation.method} failed`, { cause });
    this.operation = operation;
  }
}
