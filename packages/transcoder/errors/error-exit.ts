/** Turns anything that was thrown into what the caller may know of it. Every error passes here. */
import { create } from "@bufbuild/protobuf";
import type { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, DebugInfoSchema, ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { excerpt, MAX_ERROR_BYTES } from "../validation/excerpt.ts";
import { fromFastify } from "./fastify-errors.ts";
import { HttpError, UpstreamFailure } from "./http-error.ts";
import { type Catalogue, codeOf, reasonsOf } from "./reasons.ts";
import { INTERNAL, saidBy, UPSTREAM_ERROR, unexplained } from "./service-errors.ts";

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
export function createErrorExit({
  catalogue,
  system,
}: ErrorOptions = {}): (thrown: unknown, requestId: string) => Failure {
  const statuses = new Map(reasonsOf(catalogue?.reasons).map(({ code, status }) => [code, status]));
  const statusFor = ({ code, status }: HttpError) =>
    (catalogue ? undefined : status) ?? (statuses.get(code) || undefined);
  const somewhere = system === undefined ? "" : ` in ${system}`;
  return (thrown, requestId) => {
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
