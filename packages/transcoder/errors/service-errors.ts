/** What callers may know of a call to a service that failed. */
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema, RetryInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { HttpError, type UpstreamFailure } from "./http-error.ts";
import { type Catalogue, nameOf, statusOf } from "./reasons.ts";
import { violationError } from "./violations.ts";

export const INTERNAL = new HttpError("INTERNAL", "");
export const UPSTREAM_ERROR = new HttpError("UPSTREAM_ERROR", "A service gave an answer that can't be understood.");

/** A failure that a service meant its callers to see. */
export interface Said {
  readonly cause: ConnectError;
  /** The same as an error of HTTP. */
  readonly error: HttpError;
}

/**
 * What a service said of its failure. Undefined where the failure is of the way there or back, and with a catalogue also where
 * the service gave no reason of the catalogue's domain.
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

/** The reason that a service gave for a failure; of any domain when none is named. */
const errorInfoOf = (error: ConnectError, domain: string | undefined) =>
  error.findDetails(ErrorInfoSchema).find((info) => domain === undefined || info.domain === domain);

/** Seconds, rounded up: as the service's own header has them, or its google.rpc.RetryInfo. */
function retryAfter(cause: ConnectError): Record<string, string> {
  const given = cause.metadata.get("retry-after");
  if (given && /^\d+$/.test(given)) return { "retry-after": given };
  const { seconds, nanos } = cause.findDetails(RetryInfoSchema)[0]?.retryDelay ?? { seconds: -1n, nanos: 0 };
  return seconds < 0n || nanos < 0 ? {} : { "retry-after": String(seconds + (nanos > 0 ? 1n : 0n)) };
}

/** Whether a service said so itself, so that the words are its own and not those of the library that called it. */
function isOfService({ cause, code, metadata, details, rawMessage }: ConnectError): boolean {
  if (details.length > 0 || metadata.has("grpc-status")) return true; // gRPC: a library's own errors have no status
  if (cause !== undefined || LIBRARY.test(rawMessage)) return false;
  // Connect: the body of the error. What is left may be the end of a stream, or a transport of another kind.
  const isBody = metadata.get("content-type")?.startsWith("application/json");
  return isBody === true || (code !== Code.Unavailable && code !== Code.DeadlineExceeded);
}

/** How the messages begin with which Connect itself ends a call. */
const LIBRARY =
  /^(HTTP \d+$|http\/2 |protocol error: |unsupported (content type|response encoding) |message size |invalid (end stream|envelope|grpc-status)|failed to |parse binary: |the operation timed out$)/;

/** Only a call that changes something leaves its caller in doubt. */
const advice = (isRead: boolean) => (isRead ? "Try again." : "A write may or may not have happened.");
const unavailable = (isRead: boolean) =>
  new HttpError("UNAVAILABLE", `A service can't be reached now. ${advice(isRead)}`);
const outOfTime = (isRead: boolean) =>
  new HttpError("DEADLINE_EXCEEDED", `The time for the request ran out. ${advice(isRead)}`);

/** For a failed call of which the service said nothing: the failure came from the way there or back. */
export function unexplained(cause: unknown, isRead: boolean): HttpError {
  // The answer came, so a write was done; only 503 and 504 admit that.
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
