/** The one place that turns what a handler throws into an RPC error. */
import { create, getOption } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { type Violation, violationsToProto } from "@bufbuild/protovalidate";
import { FieldPathElementSchema, ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import { Corrupt, Overloaded, Unavailable } from "@petstore/store/port";
import { ErrorInfoSchema } from "connect-transcoder/gen/google/rpc/error_details_pb.js";
import { error as errorKind } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";
import { excerpt, firstOf, joinFirst, MAX_ERROR_BYTES } from "connect-transcoder/validation/excerpt";
import { ErrorReasonSchema } from "../../../proto/gen/petstore/common/v1/error_reason_pb.ts";
import { DomainError, type Reason } from "../../../services/resource/errors.ts";

/** Who names the reasons in a google.rpc.ErrorInfo. */
const DOMAIN = "petstore";

/** For a write whose outcome nobody knows. */
const IN_DOUBT = "A write may or may not have happened: look, or ask again, which is safe with an idempotency key.";
/** What to do when there is no answer: only what has effects leaves its caller in doubt. */
export const advice = (writes: boolean): string => (writes ? IN_DOUBT : "Try again.");
export const outOfTime = (writes: boolean): string => `The time for the request ran out. ${advice(writes)}`;

const codeByName = new Map(
  Object.entries(Code)
    .filter(([, value]) => typeof value === "number")
    .map(([name, value]) => [name.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase(), value as Code]),
);
const prefix = ErrorReasonSchema.sharedPrefix?.toUpperCase() ?? "";
const codes = new Map(
  ErrorReasonSchema.values.map((value) => [
    value.name.slice(prefix.length),
    codeByName.get(getOption(value, errorKind).grpcCode) ?? Code.Unknown,
  ]),
);

/** An RPC error that says all a caller should know. */
export class RpcError extends ConnectError {
  readonly #isRpcError = true;
  // ConnectError takes any error of its shape for an instance, and would for its subclasses.
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && #isRpcError in value && value.#isRpcError;
  }
}

/** An RPC error with a reason from the catalogue. The cause stays inside, for the log. */
export function rpcError(
  reason: Reason,
  message: string,
  cause?: unknown,
  metadata: Record<string, string> = {},
): RpcError {
  const info = { desc: ErrorInfoSchema, value: { reason, domain: DOMAIN, metadata } };
  return new RpcError(excerpt(message, MAX_ERROR_BYTES), codes.get(reason) ?? Code.Unknown, undefined, [info], cause);
}

/** The RPC error for a request that breaks rules of its schema. It tells the first of them and counts the rest. */
export function violationError(violations: readonly Violation[]): RpcError {
  const isPageToken = violations[0]?.field[0]?.kind === "field" && violations[0].field[0].name === "page_token"; // AIP-158
  const sentences = violations.map(({ field, message }) => `${pathToString(field)}: ${message}`);
  const error = rpcError(isPageToken ? "INVALID_PAGE_TOKEN" : "VALIDATION_FAILED", joinFirst(sentences));
  const [value, desc] = violationsToProto([...firstOf(violations)]);
  error.details.push({ desc, value });
  return error;
}

function domainError({ reason, message, path, cause, metadata }: DomainError): RpcError {
  if (path === undefined) return rpcError(reason, message, cause, metadata);
  const error = rpcError(reason, `${path}: ${message}`, cause, metadata);
  const elements = path.split(".").map((fieldName) => create(FieldPathElementSchema, { fieldName }));
  error.details.push({ desc: ViolationsSchema, value: { violations: [{ field: { elements }, message }] } });
  return error;
}

/** The reason that one of the petstore's services gave for a failure; undefined when the failure is not one of theirs. */
export const reasonOf = (error: ConnectError): { reason: string; metadata: Record<string, string> } | undefined =>
  error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === DOMAIN);

interface Circumstances {
  readonly requestId: string;
  /** The caller's time is over. */
  readonly isLate?: boolean;
  /** The RPC has effects: of what went wrong, it is not known whether it came before or after them. */
  readonly writes?: boolean;
}

/** True for an error that nobody foresaw. */
export const isBug = (thrown: unknown): boolean =>
  !(thrown instanceof DomainError || thrown instanceof Unavailable || thrown instanceof ConnectError);

/**
 * Turns anything that a handler threw into what the caller is told.
 *
 * A failed call to another service is "unavailable" whatever went wrong there: this service does not know what became of
 * its request, and says so.
 */
export function toRpcError(thrown: unknown, { requestId, isLate = false, writes = false }: Circumstances): RpcError {
  if (thrown instanceof RpcError) return thrown;
  if (thrown instanceof DomainError) return domainError(thrown);
  if (thrown instanceof Overloaded)
    // A step before the one that was refused may have had its effect.
    return rpcError("OVERLOADED", `There is more work than can be done in time. ${advice(writes)}`, thrown);
  // The store refuses to begin what nobody waits for any more.
  if (thrown instanceof Unavailable && isLate) return rpcError("DEADLINE_EXCEEDED", outOfTime(writes), thrown);
  if (thrown instanceof Unavailable)
    return rpcError(
      "UNAVAILABLE",
      thrown.inDoubt ? `The store did not answer. ${advice(writes)}` : "The store can't be reached now. Try again.",
      thrown,
    );
  if (thrown instanceof ConnectError) {
    // A call onward has less time than its caller, who may still wait and ask again.
    if (isLate && thrown.code === Code.DeadlineExceeded)
      return rpcError("DEADLINE_EXCEEDED", outOfTime(writes), thrown);
    return rpcError("UNAVAILABLE", `Another service did not answer. ${advice(writes)}`, thrown);
  }
  const sorry = `Something went wrong in the petstore. Quote request ${requestId}.`;
  // What can't be read is not written either, and to try again would be in vain.
  return writes && !(thrown instanceof Corrupt)
    ? rpcError("UNAVAILABLE", `${sorry} ${advice(writes)}`, thrown)
    : rpcError("INTERNAL", sorry, thrown);
}
