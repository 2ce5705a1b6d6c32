/** The one exit for whatever can go wrong: anything that was thrown becomes a record `{code, message, status}`. */
import { STATUS_CODES } from "node:http";
import { type DescEnum, getOption } from "@bufbuild/protobuf";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import { HttpError } from "connect-transcoder/errors/http-error";
import { UpstreamFailure } from "connect-transcoder/errors/upstream";
import { violationError } from "connect-transcoder/errors/violations";
import { error as errorKind } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";
import { JSON_TYPE, PROBLEM_TYPE } from "connect-transcoder/policy/media";
import { excerpt, MAX_ERROR_BYTES } from "connect-transcoder/validation/excerpt";
import { reasonOf } from "#errors";

/** What callers see of a failure. */
export interface ErrorRecord {
  readonly code: string;
  readonly message: string;
  /** The HTTP status. */
  readonly status: number;
}

/** A failure on its way out. */
export interface Failure {
  readonly record: ErrorRecord;
  readonly headers: Readonly<Record<string, string>>;
}

/** Where callers go on when nothing better is known, in seconds. */
const RETRY_AFTER = "1";

/**
 * Makes the exit for a catalogue of reasons: an enum whose values carry the option `error`. What was thrown with a reason
 * that the catalogue does not know is not passed on.
 */
export function createErrorExit(reasons: DescEnum): (thrown: unknown, requestId: string) => Failure {
  const prefix = reasons.sharedPrefix?.length ?? 0;
  const statuses = new Map(
    reasons.values.map((value) => [value.name.slice(prefix).toUpperCase(), getOption(value, errorKind).httpStatus]),
  );
  return (thrown, requestId) => {
    const error = toHttpError(thrown, (code) => Boolean(statuses.get(code)));
    const { code } = error;
    const status = statuses.get(code) ?? 500;
    const message =
      status === 500
        ? `Something went wrong in the petstore. Quote request ${requestId}.`
        : excerpt(error.message, MAX_ERROR_BYTES);
    const retry: Record<string, string> = status === 429 || status === 503 ? { "retry-after": RETRY_AFTER } : {};
    return { record: { code, message, status }, headers: { ...retry, ...error.headers } };
  };
}

/** The body of an error. A problem (RFC 9457) has the members of the record beside its own. */
export function errorBody({ code, message, status }: ErrorRecord, asProblem: boolean): { type: string; body: string } {
  if (!asProblem) return { type: JSON_TYPE, body: JSON.stringify({ code, message, status }) };
  const problem = { type: "about:blank", title: STATUS_CODES[status], detail: message, status, code, message };
  return { type: PROBLEM_TYPE, body: JSON.stringify(problem) };
}

function toHttpError(thrown: unknown, isKnown: (code: string) => boolean): HttpError {
  const error =
    thrown instanceof HttpError
      ? thrown
      : thrown instanceof UpstreamFailure
        ? fromUpstream(thrown)
        : fromFastify(thrown);
  if (isKnown(error.code)) return error;
  return thrown instanceof UpstreamFailure ? UPSTREAM_ERROR : INTERNAL;
}

const INTERNAL = new HttpError("INTERNAL", "");
const UPSTREAM_ERROR = new HttpError("UPSTREAM_ERROR", "A service gave an answer that can't be understood.");

/** Only what has effects leaves its caller in doubt. */
const advice = (isRead: boolean) => (isRead ? "Try again." : "A write may or may not have happened.");
const unavailable = (isRead: boolean) =>
  new HttpError("UNAVAILABLE", `A service can't be reached now. ${advice(isRead)}`);
const outOfTime = (isRead: boolean) =>
  new HttpError("DEADLINE_EXCEEDED", `The time for the request ran out. ${advice(isRead)}`);

function fromUpstream({ cause, operation }: UpstreamFailure): HttpError {
  const info = cause instanceof ConnectError ? reasonOf(cause) : undefined;
  if (!(cause instanceof ConnectError && info)) return unexplained(cause, operation.verb === "GET");
  const retryAfter = cause.metadata.get("retry-after");
  const headers: Record<string, string> = retryAfter && /^\d+$/.test(retryAfter) ? { "retry-after": retryAfter } : {};
  const violations = cause.findDetails(ViolationsSchema).flatMap((detail) => detail.violations);
  const located = violationError(operation, violations);
  const code = info.reason === "VALIDATION_FAILED" && located ? located.code : info.reason;
  return new HttpError(code, located?.message ?? cause.rawMessage, headers);
}

/** For a failed call whose service gave no reason, as services do with every failure: it came from the way there or back. */
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

const byFastifyCode: Record<string, HttpError> = {
  FST_ERR_CTP_BODY_TOO_LARGE: new HttpError("PAYLOAD_TOO_LARGE", "The body is too large."),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: new HttpError(
    "UNSUPPORTED_MEDIA_TYPE",
    "The Content-Type of the body is not supported.",
  ),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: new HttpError("INVALID_HEADER", "Content-Length: must be the length of the body"),
  FST_ERR_BAD_URL: new HttpError("ROUTE_NOT_FOUND", "There is nothing at this path."),
  FST_ERR_MAX_PARAM_LENGTH: new HttpError("URI_TOO_LONG", "The request target is too long."),
  ECONNRESET: new HttpError("INVALID_HEADER", "The request ended before its body was complete."),
};

function fromFastify(thrown: unknown): HttpError {
  const { code, statusCode } = (thrown ?? {}) as { code?: unknown; statusCode?: unknown };
  const known = byFastifyCode[String(code)];
  if (known) return known;
  return statusCode === 404 ? (byFastifyCode.FST_ERR_BAD_URL as HttpError) : INTERNAL;
}
