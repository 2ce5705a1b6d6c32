/** The error that a handler throws to tell its caller why a call failed. It knows nothing of transports. */
export class DomainError<R extends string = string> extends Error {
  override readonly name = "DomainError";
  /** A reason of the catalogue that the dispatcher was given. */
  readonly reason: R;
  /** The invalid field of the request, in dotted proto names ("book.shelf_id"). */
  readonly path: string | undefined;
  /** Machine-readable facts, sent with the reason (ErrorInfo.metadata). */
  readonly metadata: Record<string, string> | undefined;

  /** `message` is public: what was wrong and what to do, without a stack, a driver's text or a path of the machine. */
  constructor(
    reason: R,
    message: string,
    { cause, path, metadata }: { path?: string; cause?: unknown; metadata?: Record<string, string> } = {},
  ) {
    super(message, { cause });
    this.reason = reason;
    this.path = path;
    this.metadata = metadata;
  }
}
