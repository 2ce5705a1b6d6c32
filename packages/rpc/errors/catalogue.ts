/** The errors of one system: their reasons, the gRPC code of each, and who names them (google.rpc.ErrorInfo, AIP-193). */
import type { DescEnum, DescEnumValue } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeNamed } from "connect-transcoder/errors/reasons";
import { ErrorInfoSchema } from "connect-transcoder/gen/google/rpc/error_details_pb.js";
import { excerpt, MAX_ERROR_BYTES } from "connect-transcoder/validation/excerpt";

/** Reasons that this package gives by itself. */
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
  "VALIDATION_FAILED",
] as const;
export type OwnReason = (typeof ownReasons)[number];

/** An RPC error that says all a caller should know. */
export class RpcError extends ConnectError {
  readonly #isRpcError = true;
  // ConnectError takes any error of its shape for an instance, and would for its subclasses.
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && #isRpcError in value && value.#isRpcError;
  }
}

export interface ErrorCatalogue<R extends string = OwnReason> {
  /** What messages call the system, such as "the library". */
  readonly system: string;
  /** An RPC error with a reason of this catalogue. The cause stays inside, for the log. */
  rpcError(reason: R, message: string, cause?: unknown, metadata?: Record<string, string>): RpcError;
  /** The reason that a process of this system gave for a failure; undefined for whatever is not one of theirs. */
  reasonOf(thrown: unknown): { readonly reason: string; readonly metadata: Record<string, string> } | undefined;
}

/** Of what may be otherwise soon, it is said when to ask again (RFC 9110, 10.2.3). */
const PASSES: ReadonlySet<string> = new Set(["OVERLOADED", "UNAVAILABLE"] satisfies OwnReason[]);
const RETRY_AFTER_S = "1";

export interface CatalogueOptions {
  /** Who names the reasons in an ErrorInfo. */
  readonly domain: string;
  readonly system: string;
  /** The name of a reason's gRPC code, such as "NOT_FOUND". UNKNOWN is sent for any other text. */
  readonly grpcCode: (value: DescEnumValue) => string;
}

/** Reads the reasons from an enum, where their names share a prefix. Throws when one is missing that this package gives. */
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
