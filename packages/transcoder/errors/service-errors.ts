/** Errors of calls to services: what the service said, or else what may be said of the connection. */
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { HttpError, type UpstreamFailure } from "./http-error.ts";
import { type Catalogue, nameOf, statusOf } from "./reasons.ts";
import { violationError } from "./violations.ts";

export const INTERNAL = new HttpError("INTERNAL", "");
export const UPSTREAM_ERROR = new HttpError("UPSTREAM_ERROR", "A service gave an answer that can't be understood.");

/** An error that a service sent for its callers to see. */
export interface Said {
  readonly cause: ConnectError;
  /** The same as an error of HTTP. */
  readonly error: HttpError;
}

/**
 * The error that a service sent. Undefined if the connection failed; with a catalogue, also if the service gave no reason of
 * the catalogue's domain.
 */
export function saidBy({ cause, operation }: UpstreamFailure, catalogue: Catalogue | undefined): Said | undefined {
  if (!(cause instanceof ConnectError)) return undefined;
  const info = errorInfoOf(cause, catalogue?.domain);
  if (!info && (catalogue || !isOfService(cause))) return undefined;
  const headers: Record<string, string> = retryAfter(cause);
  if (cause.metadata.get("idempotent-replayed") === "true") headers["idempotent-replayed"] = "true";
  const violations = cause.findDetails(ViolationsSchema).flatMap((detail) => detail.violations);
  const located = violationError(operation, violations);
  const reason = info?.reason || nameOf(cause.code);
  const isValidation = reason === "VALIDATION_FAILED" || (!info && cause.code === Code.InvalidArgument);
  const code = isValidation && located ? located.code : reason;
  const message = located?.message ?? cause.rawMessage;
  return { cause, error: new HttpError(code, message, headers, statusOf(cause.code), located?.violations) };
}

/** The reason that a service gave; of any domain if none is named. */
const errorInfoOf = (error: ConnectError, domain: string | undefined) =>
  error.findDetails(ErrorInfoSchema).find((info) => domain === undefined || info.domain === domain);

/** Seconds, rounded up: as the service's own header has them, or its google.rpc.RetryInfo. */
function retryAfter(cause: ConnectError): Record<string, string> {
  const given = cause.metadata.get("retry-after");
  if (given && /^\d+$/.test(given)) return { "retry-after": given };
  const { seconds, nanos } = cause.findDetails(RetryInfoSchema)[0]?.retryDelay ?? { seconds: -1n, nanos: 0 };
  return seconds < 0n || nanos < 0 ? {} : { "retry-after": String(seconds + (nanos > 0 ? 1n : 0n)) };
}

/** Whether the error came from the service. Connect also makes errors of its own, and their words are not for callers. */
function isOfService({ cause, code, metadata, details, rawMessage }: ConnectError): boolean {
  if (details.length > 0 || metadata.has("grpc-status")) return true; // Connect's own errors have neither
  if (cause !== undefined || LIBRARY.test(rawMessage)) return false;
  // The Connect protocol sends the error of a unary call as JSON. That of a stream, or of a transport that is made by hand, shows
  // nothing of the kind.
  const isBody = metadata.get("content-type")?.startsWith("application/json");
  return isBody === true || (code !== Code.Unavailable && code !== Code.DeadlineExceeded);
}

/** How the messages of Connect's own errors begin. */
const LIBRARY =
  /^(HTTP \d+$|http\/2 |protocol error: |unsupported (content type|response encoding) |message size |invalid (end stream|envelope|grpc-status)|failed to |parse binary: |unexpected end flag|connection aborted|received GOAWAY|the operation timed out$)/;

/** What to do now. After a read there is no doubt about what happened. */
const advice = (isRead: boolean) => (isRead ? "Try again." : "A write may or may not have happened.");
const unavailable = (isRead: boolean) =>
  new HttpError("UNAVAILABLE", `A service can't be reached now. ${advice(isRead)}`);
const outOfTime = (isRead: boolean) =>
  new HttpError("DEADLINE_EXCEEDED", `The time for the request ran out. ${advice(isRead)}`);

/** The error for a call that failed without an error of the service: the connection failed, or the answer makes no sense. */
export function unexplained(cause: unknown, isRead: boolean): HttpError {
  // After a write that was answered, 502 would say that nothing was done. 503 leaves it open.
  if (!(cause instanceof ConnectError)) return isRead ? UPSTREAM_ERROR : unavailable(isRead);
  switch (cause.code) {
    case Code.Unavailable:
    case Code.Aborted: // the connection was reset
    case Code.Canceled:
    case Code.ResourceExhausted: // an answer that is too large, perhaps
      return unavailable(isRead);
    case Code.DeadlineExceeded:
      return outOfTime(isRead);
    case Code.Internal:
    case Code.DataLoss:
      return INTERNAL;
    default:
      return UPSTREAM_ERROR;
  }
}
