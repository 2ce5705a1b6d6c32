/** What goes wrong with a request: the error, what its message may repeat, and all the codes that there are. */
import { type DescEnum, getOption } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { Operation } from "../contract/operation.ts";
import { error as errorKind } from "../gen/transcoder/v1/annotations_pb.ts";

/** One field of a request that is wrong. */
export interface FieldViolation {
  /** Where it is: "book.tags[1]", the name of a parameter, or that of a header. */
  readonly field: string;
  /** What is wrong with it, such as "must be an integer". */
  readonly description: string;
}

/**
 * A request that can't be served as it was sent. The code says what is wrong for programs, such as INVALID_QUERY; the message
 * is public and says what is wrong and where.
 */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly code: string;
  /** Headers of the answer, such as Allow on a 405. */
  readonly headers: Readonly<Record<string, string>>;
  /** Without a catalogue of errors: the HTTP status. By default that of the code, if the transcoder or gRPC has it, or 500. */
  readonly status: number | undefined;
  /** The fields that are wrong, where that is known. Sent as a google.rpc.BadRequest. */
  readonly violations: readonly FieldViolation[];

  constructor(
    code: string,
    message: string,
    headers: Readonly<Record<string, string>> = {},
    status?: number,
    violations: readonly FieldViolation[] = [],
  ) {
    super(message);
    this.code = code;
    this.headers = headers;
    this.status = status;
    this.violations = violations;
  }
}

/** For a fault in one field. The message is "limit: must be an integer". */
export const fieldError = (code: string, field: string, description: string): HttpError =>
  new HttpError(code, `${field}: ${description}`, {}, undefined, [{ field, description }]);

/** For a fault in one message of a stream of requests. The first message is 1. */
export const inMessage = ({ code, message, headers, status, violations }: HttpError, number: number): HttpError =>
  new HttpError(code, `Message ${number}: ${message}`, headers, status, violations);

/**
 * A call to a service failed, or its answer can't be converted. The cause says why; callers see of it only what
 * `error-exit.ts` lets through.
 */
export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  readonly operation: Operation;

  constructor(operation: Operation, cause: unknown) {
    super(`${operation.method} failed`, { cause });
    this.operation = operation;
  }
}

/** Most bytes of the message of an error, in UTF-8: it repeats little, so that no answer grows with what was sent. */
export const MAX_ERROR_BYTES = 1000;
/** Most bytes of a name or value that such a message quotes. */
const MAX_QUOTE_BYTES = 64;
/** Most problems that one error names. */
const MAX_NAMED = 10;

const encoder = new TextEncoder();

/** The text, or its beginning and "..." when it has more bytes in UTF-8. */
export function excerpt(text: string, maxBytes = MAX_QUOTE_BYTES): string {
  const lengthWithin = (bytes: number) => encoder.encodeInto(text, new Uint8Array(bytes)).read;
  return lengthWithin(maxBytes) === text.length ? text : `${text.slice(0, lengthWithin(maxBytes - 3))}...`;
}

/** As many as one error names: at most ten. */
export const firstOf = <T>(all: readonly T[]): readonly T[] => all.slice(0, MAX_NAMED);

/** Sentences in one: the first of them, and how many more there are. */
export function joinFirst(sentences: readonly string[]): string {
  const first = firstOf(sentences).join("; ");
  const rest = sentences.length - MAX_NAMED;
  return rest > 0 ? `${first}; and ${rest} more` : first;
}

/** One entry of the catalogue of errors. */
export interface Reason {
  /** As in an error's member `code`. */
  readonly code: string;
  /** The HTTP status. */
  readonly status: number;
  readonly meaning: string;
}

/** The reasons that services give for their errors. */
export interface Catalogue {
  /** An enum whose values carry the option `error` of transcoder.v1; without its prefix each is a code. */
  readonly reasons: DescEnum;
  /** The domain that their google.rpc.ErrorInfo has. */
  readonly domain: string;
}

/** The transcoder's own errors. A catalogue may give them other statuses and meanings. */
const OWN: readonly Reason[] = [
  [
    "MALFORMED_JSON",
    400,
    "The body is not JSON (RFC 8259) in UTF-8, is empty, repeats a member, or is nested too deep.",
  ],
  ["VALIDATION_FAILED", 400, "A value is missing, of the wrong type, out of range, or not one of those allowed."],
  ["INVALID_ID", 400, "A parameter in the path is not of its type, or breaks a rule."],
  ["INVALID_QUERY", 400, "A query parameter is empty, repeated without need, not of its type, or breaks a rule."],
  ["INVALID_PAGE_TOKEN", 400, "The page token is not one that this list gave out."],
  ["INVALID_HEADER", 400, "A header does not have the form that its specification demands."],
  ["UNKNOWN_FIELD", 400, "A member or parameter that the operation does not know."],
  ["ROUTE_NOT_FOUND", 404, "The path is none of this API's."],
  ["METHOD_NOT_ALLOWED", 405, "The path exists, but not with this method; the header Allow lists those it has."],
  ["NOT_ACCEPTABLE", 406, "The header Accept leaves no media type that this operation can answer with."],
  ["REQUEST_TIMEOUT", 408, "The request did not arrive in time. Nothing was done."],
  ["ENDPOINT_SUNSET", 410, "The operation has passed its sunset date."],
  ["ETAG_MISMATCH", 412, "The record is not at a revision that the preconditions allow. Read it again."],
  ["PAYLOAD_TOO_LARGE", 413, "The body is larger than allowed."],
  ["URI_TOO_LONG", 414, "The request target is longer than allowed."],
  ["UNSUPPORTED_MEDIA_TYPE", 415, "The body is not `application/json` in UTF-8, or it is compressed."],
  ["HEADERS_TOO_LARGE", 431, "The header fields together are larger than allowed."],
  ["INTERNAL", 500, "A fault of the service. The message holds the request's identifier and nothing else."],
  ["NOT_IMPLEMENTED", 501, "The body has a transfer coding other than `chunked`. Nothing of it was read."],
  ["UPSTREAM_ERROR", 502, "A service gave an answer that can't be understood."],
  ["UNAVAILABLE", 503, "A service can't be reached. After a write the outcome is unknown."],
  ["DEADLINE_EXCEEDED", 504, "The time for the request ran out. After a write the outcome is unknown."],
].map(([code, status, meaning]) => ({ code, status, meaning }) as Reason);

/** The codes of gRPC, with the statuses and in the words of google.rpc.Code (googleapis, google/rpc/code.proto). */
const GRPC: Readonly<Record<Code, readonly [status: number, meaning: string]>> = {
  [Code.Canceled]: [499, "The operation was cancelled."],
  [Code.Unknown]: [500, "Unknown error."],
  [Code.InvalidArgument]: [400, "The client specified an invalid argument."],
  [Code.DeadlineExceeded]: [504, "The deadline expired before the operation could complete."],
  [Code.NotFound]: [404, "Some requested entity was not found."],
  [Code.AlreadyExists]: [409, "The entity that a client attempted to create already exists."],
  [Code.PermissionDenied]: [403, "The caller does not have permission to execute the operation."],
  [Code.ResourceExhausted]: [429, "Some resource has been exhausted, perhaps a quota."],
  [Code.FailedPrecondition]: [400, "The system is not in a state required for the operation."],
  [Code.Aborted]: [409, "The operation was aborted, typically because of concurrent changes."],
  [Code.OutOfRange]: [400, "The operation was attempted past the valid range."],
  [Code.Unimplemented]: [501, "The operation is not implemented or not supported."],
  [Code.Internal]: [500, "Internal error."],
  [Code.Unavailable]: [503, "The service is currently unavailable."],
  [Code.DataLoss]: [500, "Unrecoverable data loss or corruption."],
  [Code.Unauthenticated]: [401, "The request does not have valid authentication credentials."],
};

/** The HTTP status of a gRPC code. A number that is none of its codes counts as Unknown. */
export const statusOf = (code: Code): number => (GRPC[code] ?? GRPC[Code.Unknown])[0];

/** The gRPC code of an error that has only a status of HTTP, such as 405. */
export const codeOf = (status: number): Code =>
  BY_STATUS[status] ?? (status < 500 ? Code.InvalidArgument : Code.Internal);

const BY_STATUS: Readonly<Record<number, Code>> = {
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  404: Code.NotFound,
  405: Code.Unimplemented,
  409: Code.Aborted,
  410: Code.NotFound,
  412: Code.FailedPrecondition,
  429: Code.ResourceExhausted,
  499: Code.Canceled,
  501: Code.Unimplemented,
  502: Code.Unknown,
  503: Code.Unavailable,
  504: Code.DeadlineExceeded,
};

/** As in google.rpc.Code: NOT_FOUND. */
export const nameOf = (code: Code): string =>
  code === Code.Canceled
    ? "CANCELLED"
    : (Code[code] ?? "Unknown").replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();

/** All codes of gRPC, by name. */
export const codeNamed: ReadonlyMap<string, Code> = new Map(
  Object.keys(GRPC).map((code) => [nameOf(Number(code)), Number(code)]),
);

const byGrpcCode = Array.from(codeNamed, ([code, number]): Reason => {
  const [status, meaning] = GRPC[number];
  return { code, status, meaning };
});

/**
 * All errors that there can be: the values of the enum, or without one the codes of gRPC; and the transcoder's own. `docs` are
 * the comments of the contract by full name.
 */
export function reasonsOf(reasons: DescEnum | undefined, docs: Readonly<Record<string, string>> = {}): Reason[] {
  const named = reasons ? inEnum(reasons, docs) : [];
  const missing = (known: readonly Reason[], more: readonly Reason[]) =>
    more.filter(({ code }) => !known.some((one) => one.code === code));
  const own = [...named, ...missing(named, OWN)];
  return reasons ? own : [...own, ...missing(own, byGrpcCode)];
}

const inEnum = (reasons: DescEnum, docs: Readonly<Record<string, string>>): Reason[] =>
  reasons.values
    .filter(({ number }) => number !== 0)
    .map((value) => ({
      code: value.name.slice(reasons.sharedPrefix?.length ?? 0).toUpperCase(),
      status: getOption(value, errorKind).httpStatus,
      meaning: docs[`${reasons.typeName}.${value.name}`] ?? "",
    }));
