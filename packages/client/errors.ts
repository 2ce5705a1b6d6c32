/** The error that calls reject with, and how it is made from what a transport throws. */
import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { ViolationsSchema } from "./gen/buf/validate/validate_pb.ts";
import { ErrorInfoSchema } from "./gen/google/rpc/error_details_pb.ts";
import { ErrorReason } from "./gen/petstore/common/v1/error_reason_pb.ts";

/** The reasons that the petstore sends: ErrorReason in the contract. */
type Said = Exclude<keyof typeof ErrorReason, "UNSPECIFIED">;

/**
 * Why a call failed. The client adds these to the petstore's reasons:
 * - `CANCELLED`: the signal of the call was aborted.
 * - `UNREACHABLE`: no answer came, or none from a petstore. A write may have happened.
 * - `UNRECOGNIZED`: a reason that this version does not know; the message names it.
 */
export type Reason = Said | "CANCELLED" | "UNREACHABLE" | "UNRECOGNIZED";

/** What is wrong with one field of a request. */
export interface Violation {
  /** The path of the field, such as "pet.name"; "" for the message as a whole. */
  readonly field: string;
  readonly message: string;
}

interface Failed<R extends Reason> extends Error {
  readonly name: "PetstoreError";
  readonly reason: R;
  /** For the petstore's operator: names the request in its logs. */
  readonly requestId: string | undefined;
  /** The error of the transport. */
  readonly cause: ConnectError;
}

/** The caller sends too much, or the petstore can't answer now. */
type Busy = "OVERLOADED" | "RATE_LIMITED" | "UNAVAILABLE";

/** A union by `reason`: in a `switch` over it, TypeScript knows the other members of each case. */
export type PetstoreError =
  | Failed<Exclude<Reason, "VALIDATION_FAILED" | Busy>>
  | (Failed<"VALIDATION_FAILED"> & { readonly violations: readonly Violation[] })
  /** After how many milliseconds to try again, if the petstore said so. */
  | (Failed<Busy> & { readonly retryAfterMs: number | undefined });

export const isPetstoreError = (error: unknown): error is PetstoreError =>
  error instanceof Error && error.name === "PetstoreError" && "reason" in error;

const isSaid = (reason: string): reason is Said => Object.hasOwn(ErrorReason, reason) && reason !== "UNSPECIFIED";

/** Makes every call reject with a PetstoreError and nothing else. */
export const withErrors = (next: Transport): Transport => ({
  unary: (...call) => next.unary(...call).catch((thrown: unknown) => Promise.reject(petstoreError(thrown))),
  async stream(...call) {
    try {
      const response = await next.stream(...call);
      return { ...response, message: withErrorsOf(response.message) };
    } catch (thrown) {
      throw petstoreError(thrown);
    }
  },
});

async function* withErrorsOf<T>(messages: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (thrown) {
    throw petstoreError(thrown);
  }
}

/**
 * The PetstoreError for what a transport threw. Without an answer, the request `sent` may be one that can't be encoded, such
 * as with a quantity of 1.5: then it was not sent, and the reason is VALIDATION_FAILED.
 */
export function petstoreError(
  thrown: unknown,
  sent?: { desc: DescMessage; init: MessageInitShape<DescMessage> },
): PetstoreError {
  if (isPetstoreError(thrown)) return thrown;
  const cause = ConnectError.from(thrown);
  const reason = reasonOf(cause);
  const why = reason === "UNREACHABLE" && sent && whyNotEncoded(sent.desc, sent.init);
  if (why) {
    const own = { name: "PetstoreError", reason: "VALIDATION_FAILED", violations: [{ field: "", message: why }] };
    return Object.assign(new Error(why, { cause }), own) as unknown as PetstoreError;
  }
  const message = reason === "UNRECOGNIZED" ? `${told(cause)}: ${cause.rawMessage}` : cause.rawMessage;
  const own = {
    name: "PetstoreError",
    reason,
    requestId: cause.metadata.get("x-request-id") ?? undefined,
    ...(reason === "VALIDATION_FAILED" && { violations: violationsOf(cause) }),
    ...(isBusy(reason) && { retryAfterMs: retryAfterOf(cause) }),
  };
  return Object.assign(new Error(message, { cause }), own) as PetstoreError;
}

function whyNotEncoded(desc: DescMessage, init: MessageInitShape<DescMessage>): string | undefined {
  try {
    toBinary(desc, create(desc, init));
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const isBusy = (reason: Reason): reason is Busy => ["OVERLOADED", "RATE_LIMITED", "UNAVAILABLE"].includes(reason);

const told = (error: ConnectError) =>
  error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === "petstore")?.reason;

function reasonOf(error: ConnectError): Reason {
  const reason = told(error);
  if (reason !== undefined) return isSaid(reason) ? reason : "UNRECOGNIZED";
  if (error.code === Code.Canceled) return "CANCELLED";
  // The deadline passes here and at the server at once, and either may notice it first.
  return error.code === Code.DeadlineExceeded ? "DEADLINE_EXCEEDED" : "UNREACHABLE";
}

const violationsOf = (error: ConnectError): Violation[] =>
  error.findDetails(ViolationsSchema).flatMap(({ violations }) =>
    violations.map(({ field, message }) => ({
      field: (field?.elements ?? []).map(({ fieldName }) => fieldName).join("."),
      message,
    })),
  );

/** In milliseconds. The petstore sends seconds (RFC 9110, section 10.2.3). */
function retryAfterOf(error: ConnectError): number | undefined {
  const seconds = Number(error.metadata.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : undefined;
}
