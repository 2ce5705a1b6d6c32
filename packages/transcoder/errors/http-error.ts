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
