import type { ErrorReason } from "#proto/petstore/common/v1/error_reason_pb.ts";

/** A reason from the catalogue in `proto/petstore/common/v1/error_reason.proto`. */
export type Reason = Exclude<keyof typeof ErrorReason, "UNSPECIFIED">;

/**
 * Something that a caller has to know, said by a rule or a service. It knows nothing of transports: the dispatcher makes
 * an RPC error of it, the gateway an HTTP one.
 */
export class DomainError extends Error {
  override readonly name = "DomainError";
  readonly reason: Reason;
  /** The request's field at fault, in dotted proto names ("pet.category_id"). */
  readonly path: string | undefined;
  /** Facts for programs, sent beside the reason over RPC. */
  readonly metadata: Record<string, string> | undefined;

  /** `message` is public: what was wrong and what to do, without a stack, a driver's text or a path of the machine. */
  constructor(
    reason: Reason,
    message: string,
    options?: { path?: string; cause?: unknown; metadata?: Record<string, string> },
  ) {
    super(message, { cause: options?.cause });
    this.reason = reason;
    this.path = options?.path;
    this.metadata = options?.metadata;
  }
}
