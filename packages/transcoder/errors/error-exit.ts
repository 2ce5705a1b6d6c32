/** Turns anything that was thrown into what the caller may know of it. Every error passes here. */
import { STATUS_CODES } from "node:http";
import { create } from "@bufbuild/protobuf";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  DebugInfoSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../gen/google/rpc/error_details_pb.ts";
import {
  type Catalogue,
  codeOf,
  excerpt,
  fieldError,
  HttpError,
  MAX_ERROR_BYTES,
  nameOf,
  reasonsOf,
  statusOf,
  UpstreamFailure,
} from "./http-error.ts";
import { violationError } from "./violations.ts";

/** The body of an error where there is a catalogue of errors. */
export interface ErrorRecord {
  readonly code: string;
  readonly message: string;
  /** The HTTP status. */
  readonly status: number;
}

/** What a caller may know of an error. The forms of errors are made of it. */
export interface Failure {
  readonly record: ErrorRecord;
  readonly headers: Readonly<Record<string, string>>;
  /** The code of the google.rpc.Status. */
  readonly grpcCode: Code;
  /** The details of the google.rpc.Status. A function, because the records of a catalogue need none. */
  readonly details: () => ConnectError["details"];
}

/** The domain in the google.rpc.ErrorInfo of the transcoder's own errors. */
const DOMAIN = "connect-transcoder";

/** The Retry-After of a 429 or 503, in seconds, where the service does not say. */
const RETRY_AFTER = "1";

export interface ErrorOptions {
  /**
   * The reasons that services may give in a google.rpc.ErrorInfo. An error of a service with another reason, or without one, is
   * answered as UPSTREAM_ERROR. Without a catalogue all errors of services are passed on.
   */
  readonly catalogue?: Catalogue | undefined;
  /** The name of the system in the message of an error 500: "Something went wrong in the library." */
  readonly system?: string | undefined;
}

/** Compiles the conversion. The request's id is for the message of an error 500. */
export function createErrorExit({ catalogue, system }: ErrorOptions = {}) {
  const statuses = new Map(reasonsOf(catalogue?.reasons).map(({ code, status }) => [code, status]));
  const statusFor = ({ code, status }: HttpError) =>
    (catalogue ? undefined : status) ?? (statuses.get(code) || undefined);
  const somewhere = system === undefined ? "" : ` in ${system}`;
  return (thrown: unknown, requestId: string): Failure => {
    const said = thrown instanceof UpstreamFailure ? saidBy(thrown, catalogue) : undefined;
    const error = said?.error ?? ownError(thrown);
    const isKnown = statusFor(error) !== undefined;
    const known = isKnown ? error : thrown instanceof UpstreamFailure ? UPSTREAM_ERROR : INTERNAL;
    const status = statusFor(known) ?? 500;
    const message =
      status === 500
        ? `Something went wrong${somewhere}. Quote request ${requestId}.`
        : excerpt(known.message, MAX_ERROR_BYTES);
    const retry: Record<string, string> = status === 429 || status === 503 ? { "retry-after": RETRY_AFTER } : {};
    return {
      record: { code: known.code, message, status },
      headers: { ...retry, ...known.headers },
      grpcCode: said && isKnown ? said.cause.code : codeOf(status),
      details: () => [...(said && isKnown ? detailsOf(said.cause, status) : reason(known)), ...badRequest(known)],
    };
  };
}

const ownError = (thrown: unknown): HttpError => {
  if (thrown instanceof HttpError) return thrown;
  if (!(thrown instanceof UpstreamFailure)) return fromFastify(thrown);
  return unexplained(thrown.cause, thrown.operation.verb === "GET");
};

/** Where the message is not for callers, what is for developers is not either. */
const detailsOf = ({ details }: ConnectError, status: number): ConnectError["details"] =>
  status < 500 ? details : details.filter((detail) => typeNameOf(detail) !== DebugInfoSchema.typeName);

const typeNameOf = (detail: ConnectError["details"][number]): string =>
  "desc" in detail ? detail.desc.typeName : detail.type;

const reason = ({ code }: HttpError): ConnectError["details"] => [
  { desc: ErrorInfoSchema, value: create(ErrorInfoSchema, { reason: code, domain: DOMAIN }) },
];

const badRequest = ({ violations }: HttpError): ConnectError["details"] =>
  violations.length === 0
    ? []
    : [{ desc: BadRequestSchema, value: create(BadRequestSchema, { fieldViolations: [...violations] }) }];

const INTERNAL = new HttpError("INTERNAL", "");
const UPSTREAM_ERROR = new HttpError("UPSTREAM_ERROR", "A service gave an answer that can't be understood.");

/**
 * The error that a service sent for its callers to see, and the same as one of HTTP. Undefined if the connection failed; with a
 * catalogue, also if the service gave no reason of the catalogue's domain.
 */
function saidBy({ cause, operation }: UpstreamFailure, catalogue: Catalogue | undefined) {
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

/** The error for a call that failed without an error of the service: the connection failed, or the answer makes no sense. */
export function unexplained(cause: unknown, isRead: boolean): HttpError {
  // After a read there is no doubt about what happened.
  const advice = isRead ? "Try again." : "A write may or may not have happened.";
  const unavailable = () => new HttpError("UNAVAILABLE", `A service can't be reached now. ${advice}`);
  // After a write that was answered, 502 would say that nothing was done. 503 leaves it open.
  if (!(cause instanceof ConnectError)) return isRead ? UPSTREAM_ERROR : unavailable();
  switch (cause.code) {
    case Code.Unavailable:
    case Code.Aborted: // the connection was reset
    case Code.Canceled:
      return unavailable();
    case Code.ResourceExhausted:
      return isTooLarge(cause) ? tooLarge(isRead) : unavailable();
    case Code.DeadlineExceeded:
      return new HttpError("DEADLINE_EXCEEDED", `The time for the request ran out. ${advice}`);
    case Code.Internal:
    case Code.DataLoss:
      return INTERNAL;
    default:
      return UPSTREAM_ERROR;
  }
}

/** Whether Connect stopped reading an answer for its size. */
const isTooLarge = (error: ConnectError): boolean => !isOfService(error) && error.rawMessage.startsWith("message ");

/** Trying again would end in the same way. */
const tooLarge = (isRead: boolean): HttpError => {
  const what = "A service gave an answer that is larger than allowed.";
  return isRead
    ? new HttpError("UPSTREAM_ERROR", `${what} Ask for less.`)
    : new HttpError("UNAVAILABLE", `${what} The write may or may not have happened.`);
};

const NOT_FOUND = new HttpError("ROUTE_NOT_FOUND", "There is nothing at this path.");

const byCode: Record<string, HttpError> = {
  FST_ERR_CTP_BODY_TOO_LARGE: new HttpError("PAYLOAD_TOO_LARGE", "The body is too large."),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: new HttpError(
    "UNSUPPORTED_MEDIA_TYPE",
    "The Content-Type of the body is not supported.",
  ),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: fieldError("INVALID_HEADER", "Content-Length", "must be the length of the body"),
  FST_ERR_BAD_URL: NOT_FOUND,
  FST_ERR_MAX_PARAM_LENGTH: new HttpError("URI_TOO_LONG", "The request target is too long."),
  ECONNRESET: new HttpError("INVALID_HEADER", "The request ended before its body was complete."),
};

/** Errors that Fastify and Node throw, in our own words. */
function fromFastify(thrown: unknown): HttpError {
  const { code, statusCode, message } = (thrown ?? {}) as { code?: unknown; statusCode?: unknown; message?: unknown };
  const known = byCode[String(code)];
  if (known) return known;
  if (statusCode === 404) return NOT_FOUND;
  const title = STATUS_CODES[Number(statusCode)];
  // From a route of the host's own: its status and words are passed on. With a catalogue, which lacks the code, this becomes a 500.
  if (!title || Number(statusCode) < 400 || Number(statusCode) > 499) return INTERNAL;
  return new HttpError(title.toUpperCase().replaceAll(/\W+/g, "_"), String(message), {}, Number(statusCode));
}
