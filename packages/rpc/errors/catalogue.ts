/** The errors of one system: their reasons, the gRPC code of each, and their domain (google.rpc.ErrorInfo, AIP-193). */
import type { DescEnum, DescEnumValue } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeNamed } from "connect-transcoder/errors";
import { excerpt, MAX_ERROR_BYTES } from "connect-transcoder/excerpt";
import { ErrorInfoSchema } from "connect-transcoder/gen/google/rpc/error_details_pb.js";

/** Reasons that this package itself uses. */
const ownReasons = [
  "DEADLINE_EXCEEDED",
  "INTERNAL",
  "INVALID_PAGE_TOKEN",
  "OVERLOADED",
  "PAYLOAD_TOO_LARGE",
  "PERMISSION_DENIED",
  "ROUTE_NOT_FOUND",
  "TOO_MANY_STREAMS",
  "UNAUTHENTICATED",
  "UNAVAILABLE",
  "UNSUPPORTED_MEDIA_TYPE",
  "VALIDATION_FAILED",
] as const;
export type OwnReason = (typeof ownReasons)[number];

/** An RPC error that is safe to send to the caller as it is. */
export class RpcError extends ConnectError {
  readonly #isRpcError = true;
  // ConnectError's check accepts any error of its shape, and subclasses would inherit that.
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && #isRpcError in value && value.#isRpcError;
  }
}

export interface ErrorCatalogue<R extends string = OwnReason> {
  /** What messages call the system, such as "the library". */
  readonly system: string;
  /** An RPC error with a reason of this catalogue. The cause stays inside, for the log. */
  rpcError(reason: R, message: string, cause?: unknown, metadata?: Record<string, string>): RpcError;
  /** The reason that a process of this system gave for a failure; undefined for any other failure. */
  reasonOf(thrown: unknown): { readonly reason: string; readonly metadata: Record<string, string> } | undefined;
}

/** Temporary failures: their metadata says when to retry, in seconds (RFC 9110, 10.2.3). */
const PASSES: ReadonlySet<string> = new Set(["OVERLOADED", "UNAVAILABLE"] satisfies OwnReason[]);
const RETRY_AFTER_S = "1";

export interface CatalogueOptions {
  /** The domain of the reasons, in ErrorInfo. */
  readonly domain: string;
  readonly system: string;
  /** The name of a reason's gRPC code, such as "NOT_FOUND". UNKNOWN is sent for any other text. */
  readonly grpcCode: (value: DescEnumValue) => string;
}

/** Reads the reasons from an enum, whose values share a prefix. Throws if one that this package uses is missing. */
export function createErrorCatalogue<R extends string>(
  reasons: DescEnum,
  { domain, system, grpcCode }: CatalogueOptions,
): ErrorCatalogue<R | OwnReason> {
  const prefix = reasons.sharedPrefix?.length ?? 0;
  const codes = new Map(
    reasons.values.map((value) => [value.name.slice(prefix), codeNamed.get(grpcCode(value)) ?? Code.Unknown]),
  );
  const missing = ownReasons.filter((reason) => !codes.has(reason));
  if (missing.length > 0) throw new Error(`${reasons.typeName} lacks ${missing.join(", ")}.`);
  return {
    system,
    rpcError(reason, message, cause, metadata = {}) {
      const info = { desc: ErrorInfoSchema, value: { reason, domain, metadata } };
      return new RpcError(
        excerpt(message, MAX_ERROR_BYTES),
        codes.get(reason) ?? Code.Unknown,
        PASSES.has(reason) ? { "retry-after": RETRY_AFTER_S } : undefined,
        [info],
        cause,
      );
    },
    reasonOf: (thrown) =>
      thrown instanceof ConnectError
        ? thrown.findDetails(ErrorInfoSchema).find((info) => info.domain === domain)
        : undefined,
  };
}
