/** The one exit for whatever can go wrong: anything that was thrown becomes a record `{code, message, status}`. */
import { STATUS_CODES } from "node:http";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { JSON_TYPE, PROBLEM_TYPE } from "../policy/media.ts";
import { excerpt, MAX_ERROR_BYTES } from "../validation/excerpt.ts";
import { HttpError, UpstreamFailure } from "./http-error.ts";
import { type Catalogue, nameOf, reasonsOf, statusOf } from "./reasons.ts";
import { violationError } from "./violations.ts";

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

export interface ErrorOptions {
  /**
   * The reasons that services give for their failures, in a google.rpc.ErrorInfo. What has another reason or none is told
   * as a fault of theirs. Without a catalogue any reason is passed on, and where there is none the name of the gRPC code;
   * the status is that of the code.
   */
  readonly catalogue?: Catalogue | undefined;
  /** Where something went wrong, in the message of an error 500, such as "the library". */
  readonly system?: string | undefined;
}

/** Makes the exit: from what was thrown to the record that its caller sees. */
export function createErrorExit({
  catalogue,
  system,
}: ErrorOptions = {}): (thrown: unknown, requestId: string) => Failure {
  const statuses = new Map(reasonsOf(catalogue?.reasons).map(({ code, status }) => [code, status]));
  const statusFor = ({ code, status }: HttpError) => statuses.get(code) || (catalogue ? undefined : status);
  const somewhere = system === undefined ? "" : ` in ${system}`;
  return (thrown, requestId) => {
    const error = toHttpError(thrown, catalogue);
    const known = statusFor(error) ? error : thrown instanceof UpstreamFailure ? UPSTREAM_ERROR : INTERNAL;
    const status = statusFor(known) ?? 500;
    const message =
      status === 500
        ? `Something went wrong${somewhere}. Quote request ${requestId}.`
        : excerpt(known.message, MAX_ERROR_BYTES);
    const retry: Record<string, string> = status === 429 || status === 503 ? { "retry-after": RETRY_AFTER } : {};
    return { record: { code: known.code, message, status }, headers: { ...retry, ...known.headers } };
  };
}

/** The body of an error. A problem (RFC 9457) has the members of the record beside its own. */
export function errorBody({ code, message, status }: ErrorRecord, asProblem: boolean): { type: string; body: string } {
  if (!asProblem) return { type: JSON_TYPE, body: JSON.stringify({ code, message, status }) };
  const problem = { type: "about:blank", title: STATUS_CODES[status] ?? code, detail: message, status, code, message };
  return { type: PROBLEM_TYPE, body: JSON.stringify(problem) };
}

function toHttpError(thrown: unknown, catalogue: Catalogue | undefined): HttpError {
  if (thrown instanceof HttpError) return thrown;
  return thrown instanceof UpstreamFailure ? fromUpstream(thrown, catalogue) : fromFastify(thrown);
}

const INTERNAL = new HttpError("INTERNAL", "");
const UPSTREAM_ERROR = new HttpError("UPSTREAM_ERROR", "A service gave an answer that can't be understood.");

/** Only what has effects leaves its caller in doubt. */
const advice = (isRead: boolean) => (isRead ? "Try again." : "A write may or may not have happened.");
const unavailable = (isRead: boolean) =>
  new HttpError("UNAVAILABLE", `A service can't be reached now. ${advice(isRead)}`);
const outOfTime = (isRead: boolean) =>
  new HttpError("DEADLINE_EXCEEDED", `The time for the request ran out. ${advice(isRead)}`);

function fromUpstream({ cause, operation }: UpstreamFailure, catalogue: Catalogue | undefined): HttpError {
  const info = cause instanceof ConnectError ? errorInfoOf(cause, catalogue?.domain) : undefined;
  if (!(cause instanceof ConnectError) || (!info && (catalogue || !isOfService(cause))))
    return unexplained(cause, operation.verb === "GET");
  const retryAfter = cause.metadata.get("retry-after");
  const headers: Record<string, string> = retryAfter && /^\d+$/.test(retryAfter) ? { "retry-after": retryAfter } : {};
  if (cause.metadata.get("idempotent-replayed") === "true") headers["idempotent-replayed"] = "true";
  const violations = cause.findDetails(ViolationsSchema).flatMap((detail) => detail.violations);
  const located = violationError(operation, violations);
  const reason = info?.reason ?? nameOf(cause.code);
  const isValidation = reason === "VALIDATION_FAILED" || (!info && cause.code === Code.InvalidArgument);
  const code = isValidation && located ? located.code : reason;
  return new HttpError(code, located?.message ?? cause.rawMessage, headers, statusOf(cause.code));
}

/** The reason that a service gave for a failure; of any domain when none is named. */
const errorInfoOf = (error: ConnectError, domain: string | undefined) =>
  error.findDetails(ErrorInfoSchema).find((info) => domain === undefined || info.domain === domain);

/** Whether a service said so, in words for its callers, and not the way there or back. Only the latter has a cause. */
const isOfService = ({ cause, code }: ConnectError): boolean =>
  cause === undefined && code !== Code.Unavailable && code !== Code.DeadlineExceeded;

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
  const { code, statusCode, message } = (thrown ?? {}) as { code?: unknown; statusCode?: unknown; message?: unknown };
  const known = byFastifyCode[String(code)];
  if (known) return known;
  if (statusCode === 404) return byFastifyCode.FST_ERR_BAD_URL as HttpError;
  const title = STATUS_CODES[Number(statusCode)];
  // A fault of the caller's on a route beside the operations, in the words that Fastify would send. A catalogue has no code for it.
  if (!title || Number(statusCode) < 400 || Number(statusCode) > 499) return INTERNAL;
  return new HttpError(title.toUpperCase().replaceAll(/\W+/g, "_"), String(message), {}, Number(statusCode));
}
