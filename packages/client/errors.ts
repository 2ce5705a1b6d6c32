/** The error that everything fails with, and how it is made of what a transport throws. */
import { Code, ConnectError } from "@connectrpc/connect";
import { ViolationsSchema } from "./gen/buf/validate/validate_pb.ts";
import { ErrorInfoSchema } from "./gen/google/rpc/error_details_pb.ts";
import type { ErrorReason } from "./gen/petstore/common/v1/error_reason_pb.ts";

/**
 * Why something failed: a code of the contract, which a later version may add to, or one of the client's own:
 * - `NOT_SENT`: the call makes no sense, or there is no credential for it. Nothing was sent.
 * - `UNREACHABLE`: no answer came, or none of a petstore. A write may have happened.
 * - `CANCELLED`: the signal of the call was aborted. A write may have happened.
 */
export type ErrorCode = Exclude<keyof typeof ErrorReason, "UNSPECIFIED"> | "CANCELLED" | "NOT_SENT" | "UNREACHABLE";

/** What is wrong with one field of a request. */
export interface Violation {
  /** Such as "name"; "" for the request as a whole. */
  readonly field: string;
  readonly message: string;
}

type More = Partial<
  Pick<PetstoreError, "status" | "requestId" | "retryAfterMs" | "violations" | "missingScope" | "cause">
>;

export class PetstoreError extends Error {
  override readonly name = "PetstoreError";
  readonly code: ErrorCode;
  /** The HTTP status; 0 if no petstore answered. */
  readonly status: number;
  /** What to do about it, in a sentence. */
  readonly advice: string;
  /** For the petstore's operator: names the request in its logs. */
  readonly requestId: string | undefined;
  /** After how long to try again, if the petstore said so. */
  readonly retryAfterMs: number | undefined;
  /** What is wrong with which field, if the code is VALIDATION_FAILED. */
  readonly violations: readonly Violation[] | undefined;

  /** The scope that the credential lacks, if the code is PERMISSION_DENIED and the petstore named it. */
  readonly missingScope: string | undefined;

  constructor(code: string, message: string, more: More = {}) {
    const { status = 0, requestId, retryAfterMs, violations, missingScope, cause } = more;
    super(message, { cause });
    this.code = code as ErrorCode;
    this.status = status;
    this.advice = ADVICE[code] ?? ADVICE[status] ?? (status < 500 ? ADVICE[400] : ADVICE[500]) ?? "";
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
    this.violations = violations;
    this.missingScope = missingScope;
  }

  /** By name, since a program may have two copies of this class: @petstore/testing has its own. */
  static override [Symbol.hasInstance](value: unknown): value is PetstoreError {
    return (value as Error | undefined)?.name === "PetstoreError";
  }
}

const ADVICE: Readonly<Record<string, string>> = {
  NOT_SENT: "Nothing was sent. Correct the call, or what gives the credential.",
  CANCELLED: "You aborted it. If it was a write, look whether it happened.",
  UNREACHABLE: "Check the address, and whether the petstore runs. If it was a write, look whether it happened.",
  CONCURRENT_UPDATE: "Try again.",
  400: "Correct the request.",
  401: "Give a valid credential.",
  403: "Give a credential that has the scope.",
  404: "Look for what there is. This is not, or is no more.",
  409: "Read what is stored, which does not allow this now, and decide anew.",
  410: "Begin again with a snapshot.",
  412: "Read the record again, and send the change with its new etag.",
  413: "Send less at once.",
  422: "Take another idempotency key for another create.",
  429: "Wait, for retryAfterMs if it is given, and try again.",
  500: "Report it to the petstore's operator, with the requestId.",
  503: "Try again later. If it was a write, look whether it happened.",
  504: "Allow more time. If it was a write, look whether it happened.",
};

/** A PetstoreError for whatever was thrown. */
export function petstoreError(thrown: unknown): PetstoreError {
  if (thrown instanceof PetstoreError) return thrown;
  const cause = ConnectError.from(thrown);
  const code = codeOf(cause);
  return new PetstoreError(code, cause.rawMessage, {
    status: OWN.includes(code) ? 0 : (STATUS[code] ?? STATUS_OF[cause.code] ?? 500),
    ...toldIn(cause.metadata),
    violations: code === "VALIDATION_FAILED" ? violationsOf(cause) : undefined,
    cause,
  });
}

function codeOf(error: ConnectError): string {
  const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === "petstore");
  if (info) return info.reason;
  if (error.code === Code.Canceled) return "CANCELLED";
  // The deadline passes here and at the server at once, and either may notice it first.
  return error.code === Code.DeadlineExceeded ? "DEADLINE_EXCEEDED" : "UNREACHABLE";
}

const OWN: readonly string[] = ["CANCELLED", "NOT_SENT", "UNREACHABLE"] satisfies ErrorCode[];

/** The HTTP status of a code of the contract, where it is not that of its gRPC code. */
const STATUS: Readonly<Record<string, number>> = {
  ROUTE_NOT_FOUND: 404,
  REQUEST_TIMEOUT: 408,
  ENDPOINT_SUNSET: 410,
  ETAG_MISMATCH: 412,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  MISDIRECTED_REQUEST: 421,
  IDEMPOTENCY_KEY_REUSED: 422,
};

const STATUS_OF: Readonly<Partial<Record<Code, number>>> = {
  [Code.InvalidArgument]: 400,
  [Code.Unauthenticated]: 401,
  [Code.PermissionDenied]: 403,
  [Code.NotFound]: 404,
  [Code.FailedPrecondition]: 409,
  [Code.Aborted]: 409,
  [Code.OutOfRange]: 410,
  [Code.ResourceExhausted]: 429,
  [Code.Unimplemented]: 501,
  [Code.Unknown]: 502,
  [Code.Unavailable]: 503,
  [Code.DeadlineExceeded]: 504,
};

/** By the names that callers give: `categoryId` for pet.category_id. */
const violationsOf = (error: ConnectError): Violation[] =>
  error.findDetails(ViolationsSchema).flatMap(({ violations }) =>
    violations.map(({ field, message }) => {
      const path = (field?.elements ?? []).map(({ fieldName }) => fieldName).join(".");
      const own = path.replace(/^(pet|category|order|inventory)\./, "");
      return { field: own.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), message };
    }),
  );

/** What the headers of an answer say of its error. */
export function toldIn(headers: Headers): More {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN); // RFC 9110, 10.2.3
  return {
    requestId: headers.get("x-request-id") ?? undefined,
    retryAfterMs: Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : undefined,
    missingScope: / scope="([^"]*)"/.exec(headers.get("www-authenticate") ?? "")?.[1], // RFC 6750, 3
  };
}
