/** The one place that turns what a handler throws into an RPC error. */
import { create } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { FieldPathElementSchema, ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import { firstOf, joinFirst } from "connect-transcoder/validation/excerpt";
import { type Violation, violationsToProto } from "connect-transcoder/validation/violation";
import { type ErrorCatalogue, RpcError } from "./catalogue.ts";
import { DomainError } from "./domain-error.ts";

/** For a write whose outcome nobody knows. */
const IN_DOUBT = "A write may or may not have happened: look, or ask again, which is safe with an idempotency key.";
/** What to do when there is no answer: only what has effects leaves its caller in doubt. */
export const advice = (writes: boolean): string => (writes ? IN_DOUBT : "Try again.");
export const outOfTime = (writes: boolean): string => `The time for the request ran out. ${advice(writes)}`;
/** For what there was no time to begin. */
export const NOT_BEGUN = "The time for the request is too short for what there is to do. Nothing was done.";

/**
 * What the failure of a service's store means: it was not reached, so nothing happened; it may have done what it was asked
 * to; it had too much to do and did not begin; or what it holds can't be read.
 */
export type StoreFailure = "unreachable" | "in doubt" | "overloaded" | "corrupt";

/** Says what a failure of the store is; undefined for whatever is none. */
export type StoreFailureOf = (thrown: unknown) => StoreFailure | undefined;

/** The time of a request was over before another service was called in its name: the call was not made. */
export class DeadlineExpired extends Error {
  override readonly name = "DeadlineExpired";
}

/** The RPC error for a request that breaks rules of its schema. It tells the first of them and counts the rest. */
export function violationError({ rpcError }: ErrorCatalogue, violations: readonly Violation[]): RpcError {
  const isPageToken = violations[0]?.field[0]?.kind === "field" && violations[0].field[0].name === "page_token"; // AIP-158
  const sentences = violations.map(({ field, message }) => `${pathToString(field)}: ${message}`);
  const error = rpcError(isPageToken ? "INVALID_PAGE_TOKEN" : "VALIDATION_FAILED", joinFirst(sentences));
  error.details.push({ desc: ViolationsSchema, value: violationsToProto(firstOf(violations)) });
  return error;
}

function domainError(
  errors: ErrorCatalogue<string>,
  { reason, message, path, cause, metadata }: DomainError,
): RpcError {
  if (path === undefined) return errors.rpcError(reason, message, cause, metadata);
  const error = errors.rpcError(reason, `${path}: ${message}`, cause, metadata);
  const elements = path.split(".").map((fieldName) => create(FieldPathElementSchema, { fieldName }));
  error.details.push({ desc: ViolationsSchema, value: { violations: [{ field: { elements }, message }] } });
  return error;
}

interface Circumstances {
  readonly requestId: string;
  /** The caller's time is over. */
  readonly isLate?: boolean;
  /** The RPC has effects: of what went wrong, it is not known whether it came before or after them. */
  readonly writes?: boolean;
}

export interface ErrorTranslation {
  /** True for an error that nobody foresaw. */
  isBug(thrown: unknown): boolean;
  /**
   * Turns anything that a handler threw into what the caller is told.
   *
   * A failed call to another service is "unavailable" whatever went wrong there: this service does not know what became
   * of its request, and says so.
   */
  toRpcError(thrown: unknown, circumstances: Circumstances): RpcError;
}

export function createErrorTranslation(
  errors: ErrorCatalogue,
  storeFailureOf: StoreFailureOf = () => undefined,
): ErrorTranslation {
  const { rpcError, system } = errors;
  const failureOf = (thrown: unknown) => (thrown instanceof DeadlineExpired ? "in doubt" : storeFailureOf(thrown));

  return {
    isBug: (thrown) =>
      !(thrown instanceof DomainError || thrown instanceof ConnectError) &&
      [undefined, "corrupt"].includes(failureOf(thrown)),
    toRpcError(thrown, { requestId, isLate = false, writes = false }) {
      if (thrown instanceof RpcError) return thrown;
      if (thrown instanceof DomainError) return domainError(errors as ErrorCatalogue<string>, thrown);
      if (thrown instanceof ConnectError) {
        // A call onward has less time than its caller, who may still wait and ask again.
        if (isLate && thrown.code === Code.DeadlineExceeded)
          return rpcError("DEADLINE_EXCEEDED", outOfTime(writes), thrown);
        return rpcError("UNAVAILABLE", `Another service did not answer. ${advice(writes)}`, thrown);
      }
      const failure = failureOf(thrown);
      if (failure === "overloaded")
        // A step before the one that was refused may have had its effect.
        return rpcError("OVERLOADED", `There is more work than can be done in time. ${advice(writes)}`, thrown);
      if (failure === "unreachable" || failure === "in doubt") {
        // The store refuses to begin what nobody waits for any more.
        if (isLate) return rpcError("DEADLINE_EXCEEDED", outOfTime(writes), thrown);
        const noAnswer = `The store did not answer. ${advice(writes)}`;
        const words = failure === "in doubt" ? noAnswer : "The store can't be reached now. Try again.";
        return rpcError("UNAVAILABLE", words, thrown);
      }
      const sorry = `Something went wrong in ${system}. Quote request ${requestId}.`;
      // What can't be read is not written either, and to try again would be in vain.
      return writes && failure !== "corrupt"
        ? rpcError("UNAVAILABLE", `${sorry} ${advice(writes)}`, thrown)
        : rpcError("INTERNAL", sorry, thrown);
    },
  };
}
