/** The reasons that callers get (google.rpc.ErrorInfo, AIP-193), and how what handlers throw becomes an error with one. */
import { create, type DescEnum, type DescEnumValue } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { type Any, AnySchema, anyPack } from "@bufbuild/protobuf/wkt";
import { FieldPathElementSchema, ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeNamed } from "connect-transcoder/errors";
import { excerpt, firstOf, joinFirst, MAX_ERROR_BYTES } from "connect-transcoder/excerpt";
import { ErrorInfoSchema } from "connect-transcoder/gen/google/rpc/error_details_pb.js";
import { type Violation, violationsToProto } from "connect-transcoder/validation";
import { DomainError } from "./domain-error.ts";

/** Reasons that this package itself uses. */
export const ownReasons = [
  "DEADLINE_EXCEEDED",
  "INTERNAL",
  "INVALID_PAGE_TOKEN",
  "OVERLOADED",
  "PAYLOAD_TOO_LARGE",
  "PERMISSION_DENIED",
  "ROUTE_NOT_FOUND",
  "TOO_MANY_STREAMS",
  "UNAUTHENTICATED",
  "UNAVAILABLE",
  "UNSUPPORTED_MEDIA_TYPE",
  "VALIDATION_FAILED",
] as const;
export type OwnReason = (typeof ownReasons)[number];

/** An RPC error that is safe to send to the caller as it is. */
export class RpcError extends ConnectError {
  readonly #isRpcError = true;
  // ConnectError's check accepts any error of its shape, and subclasses would inherit that.
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && #isRpcError in value && value.#isRpcError;
  }
}

/** The errors of one system: their reasons, the gRPC code of each, and their domain. */
export interface ErrorCatalogue<R extends string = OwnReason> {
  /** What messages call the system, such as "the library". */
  readonly system: string;
  /** An RPC error with a reason of this catalogue. The cause stays inside, for the log. */
  rpcError(reason: R, message: string, cause?: unknown, metadata?: Record<string, string>): RpcError;
  /** The reason that a process of this system gave for a failure; undefined for any other failure. */
  reasonOf(thrown: unknown): { readonly reason: string; readonly metadata: Record<string, string> } | undefined;
}

/** Temporary failures: their metadata says when to retry, in seconds (RFC 9110, 10.2.3). */
const PASSES: ReadonlySet<string> = new Set(["OVERLOADED", "UNAVAILABLE"] satisfies OwnReason[]);

interface CatalogueOptions {
  /** The domain of the reasons, in ErrorInfo. */
  readonly domain: string;
  readonly system: string;
  /** The name of a reason's gRPC code, such as "NOT_FOUND". UNKNOWN is sent for any other text. */
  readonly grpcCode: (value: DescEnumValue) => string;
}

/** Reads the reasons from an enum, whose values share a prefix. Throws if one that this package uses is missing. */
export function createErrorCatalogue<R extends string>(
  reasons: DescEnum,
  { domain, system, grpcCode }: CatalogueOptions,
): ErrorCatalogue<R | OwnReason> {
  const prefix = reasons.sharedPrefix?.length ?? 0;
  const codes = new Map(
    reasons.values.map((value) => [value.name.slice(prefix), codeNamed.get(grpcCode(value)) ?? Code.Unknown]),
  );
  const missing = ownReasons.filter((reason) => !codes.has(reason));
  if (missing.length > 0) throw new Error(`${reasons.typeName} lacks ${missing.join(", ")}.`);
  return {
    system,
    rpcError(reason, message, cause, metadata = {}) {
      const info = { desc: ErrorInfoSchema, value: { reason, domain, metadata } };
      return new RpcError(
        excerpt(message, MAX_ERROR_BYTES),
        codes.get(reason) ?? Code.Unknown,
        PASSES.has(reason) ? { "retry-after": "1" } : undefined,
        [info],
        cause,
      );
    },
    reasonOf: (thrown) =>
      thrown instanceof ConnectError
        ? thrown.findDetails(ErrorInfoSchema).find((info) => info.domain === domain)
        : undefined,
  };
}

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
  const error = errors.rpcError(reason, path === undefined ? message : `${path}: ${message}`, cause, metadata);
  if (path === undefined) return error;
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
      if (failure === "full") {
        const full = "The store's disk is full, and takes no changes until there is room.";
        return rpcError("UNAVAILABLE", `${full} ${advice(writes)}`, thrown);
      }
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

type Detail = ConnectError["details"][number];

/** A detail as google.protobuf.Any, the form in which gRPC carries it. */
export const toAny = (detail: Detail): Any =>
  "desc" in detail
    ? anyPack(detail.desc, create(detail.desc, detail.value))
    : create(AnySchema, { typeUrl: `type.googleapis.com/${detail.type}`, value: detail.value });

export const fromAny = ({ typeUrl, value }: Any): Detail => ({
  type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
  value,
});
