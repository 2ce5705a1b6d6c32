/** The one exit for whatever can go wrong: from anything that was thrown to what its caller may know of it. */
import { create } from "@bufbuild/protobuf";
import type { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.ts";
import { excerpt, MAX_ERROR_BYTES } from "../validation/excerpt.ts";
import { fromFastify } from "./fastify-errors.ts";
import { HttpError, UpstreamFailure } from "./http-error.ts";
import { type Catalogue, codeOf, reasonsOf } from "./reasons.ts";
import { INTERNAL, saidBy, UPSTREAM_ERROR, unexplained } from "./service-errors.ts";

/** What callers see of a failure where there is a catalogue of errors. */
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
  /** What a google.rpc.Status has as its code. */
  readonly grpcCode: Code;
  /** What a google.rpc.Status has as its details. Made on demand, for a catalogue's records have none. */
  readonly details: () => ConnectError["details"];
}

/** Who names the reasons that the transcoder itself has for refusing a request. */
const DOMAIN = "connect-transcoder";

/** Seconds until a request can be sent again, where nothing better is known. */
const RETRY_AFTER = "1";

export interface ErrorOptions {
  /**
   * The reasons that services give for their failures, in a google.rpc.ErrorInfo. A failure with another reason, or with
   * none, counts as a fault of the service. Without a catalogue all failures of services are passed on.
   */
  readonly catalogue?: Catalogue | undefined;
  /** Where something went wrong, in the message of an error 500, such as "the library". */
  readonly system?: string | undefined;
}

/** Makes the exit: from what was thrown to what its caller may know. */
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
      details: () => [...(said && isKnown ? said.cause.details : reason(known)), ...badRequest(known)],
    };
  };
}

const ownError = (thrown: unknown): HttpError => {
  if (thrown instanceof HttpError) return thrown;
  if (!(thrown instanceof UpstreamFailure)) return fromFastify(thrown);
  return unexplained(thrown.cause, thrown.operation.verb === "GET");
};

const reason = ({ code }: HttpError): ConnectError["details"] => [
  { desc: ErrorInfoSchema, value: create(ErrorInfoSchema, { reason: code, domain: DOMAIN }) },
];

const badRequest = ({ violations }: HttpError): ConnectError["details"] =>
  violations.length === 0
    ? []
    : [{ desc: BadRequestSchema, value: create(BadRequestSchema, { fieldViolations: [...violations] }) }];
