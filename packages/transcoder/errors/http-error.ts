/**
 * A request that can't be served as it was sent. The code is one of the catalogue of reasons; the message is public and
 * says what is wrong and where.
 */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly code: string;
  /** Sent with the answer, such as Allow on a 405. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }
}
