import type { Operation } from "../contract/operation.ts";

/**
 * A request that can't be served as it was sent. The code is one of the catalogue of errors; the message is public and
 * says what is wrong and where.
 */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly code: string;
  /** Sent with the answer, such as Allow on a 405. */
  readonly headers: Readonly<Record<string, string>>;
  /** Counts where there is no catalogue and the code is none of the transcoder's own. */
  readonly status: number | undefined;

  constructor(code: string, message: string, headers: Readonly<Record<string, string>> = {}, status?: number) {
    super(message);
    this.code = code;
    this.headers = headers;
    this.status = status;
  }
}

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
