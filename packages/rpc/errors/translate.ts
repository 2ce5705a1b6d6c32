/** The one place that turns what a handler throws into an RPC error. */
import { create } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { FieldPathElementSchema, ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import { firstOf, joinFirst } from "connect-transcoder/excerpt";
import { type Violation, violationsToProto } from "connect-transcoder/validation";
import { type ErrorCatalogue, RpcError } from "./catalogue.ts";
import { DomainError } from "./domain-error.ts";

/** Advice after a write whose outcome is unknown. */
const IN_DOUBT = "A write may or may not have happened: look, or ask again, which is safe with an idempotency key.";
/** What the caller can do if there is no answer. Only a call with side effects leaves it in doubt. */
export const advice = (writes: boolean): string => (writes ? IN_DOUBT : "Try again.");
export const outOfTime = (writes: boolean): string => `The time for the request ran out. ${advice(writes)}`;
/** The message for a call that there was no time to begin. */
export const NOT_BEGUN = "The time for the request is too short for what there is to do. Nothing was done.";

/**
 * What the failure of a service's store means: it was not reached, so nothing happened; it may have carried out the
 * operation; it had too much to do and did not begin; it has no room for a change; or a stored document can't be read.
 */
export type StoreFailure = "unreachable" | "in doubt" | "overloaded" | "full" | "corrupt";

/** Classifies a failure of the store; undefined if the error is none. */
export type StoreFailureOf = (thrown: unknown) => StoreFailure | undefined;

/** A request's deadline passed before another service was called on its behalf: the call was not made. */
export class DeadlineExpired extends Error {
  override readonly name = "DeadlineExpired";
}

/** The RPC error for a request that violates rules of its schema. It names the first violations and counts the rest. */
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
  /** The caller's deadline has passed. */
  readonly isLate?: boolean;
  /** The RPC has side effects, and it is unknown whether the failure came before or after them. */
  readonly writes?: boolean;
}

export type ErrorTranslation = ReturnType<typeof createErrorTranslation>;

export function createErrorTranslation(errors: ErrorCatalogue, storeFailureOf: StoreFailureOf = () => undefined) {
  const { rpcError, system } = errors;
  const failureOf = (thrown: unknown) => (thrown instanceof DeadlineExpired ? "in doubt" : storeFailureOf(thrown));

  return {
    /** Whether an error was not foreseen. */
    isBug: (thrown: unknown): boolean =>
      !(thrown instanceof DomainError || thrown instanceof ConnectError) &&
      [undefined, "corrupt"].includes(failureOf(thrown)),
    /**
     * Turns anything that a handler threw into the error that the caller gets.
     *
     * A failed call to another service becomes UNAVAILABLE whatever went wrong there: this service does not know what became
     * of its own call, and says so.
     */
    toRpcError(thrown: unknown, { requestId, isLate = false, writes = false }: Circumstances): RpcError {
      if (thrown instanceof RpcError) return thrown;
      if (thrown instanceof DomainError) return domainError(errors as ErrorCatalogue<string>, thrown);
      if (thrown instanceof ConnectError) {
        // A call to another service has less time than the caller, who may still be waiting: then it is UNAVAILABLE.
        if (isLate && thrown.code === Code.DeadlineExceeded)
          return rpcError("DEADLINE_EXCEEDED", outOfTime(writes), thrown);
        return rpcError("UNAVAILABLE", `Another service did not answer. ${advice(writes)}`, thrown);
      }
      const failure = failureOf(thrown);
      if (failure === "overloaded")
        // A step before the refused one may have taken effect.
        return rpcError("OVERLOADED", `There is more work than can be done in time. ${advice(writes)}`, thrown);
      if (failure === "full")
        return rpcError(
          "UNAVAILABLE",
          `The store's disk is full, and takes no changes until there is room. ${advice(writes)}`,
          thrown,
        );
      if (failure === "unreachable" || failure === "in doubt") {
        // The store refuses to begin work after its deadline.
        if (isLate) return rpcError("DEADLINE_EXCEEDED", outOfTime(writes), thrown);
        const noAnswer = `The store did not answer. ${advice(writes)}`;
        const words = failure === "in doubt" ? noAnswer : "The store can't be reached now. Try again.";
        return rpcError("UNAVAILABLE", words, thrown);
      }
      const sorry = `Something went wrong in ${system}. Quote request ${requestId}.`;
      // A corrupt document was not written either, and a retry would fail again.
      return writes && failure !== "corrupt"
        ? rpcError("UNAVAILABLE", `${sorry} ${advice(writes)}`, thrown)
        : rpcError("INTERNAL", sorry, thrown);
    },
  };
}
