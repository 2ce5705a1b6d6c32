/** What is known of a call that failed: whether it ran, never ran, or may have run; or whether the service still works on it. */
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { advice, type ErrorCatalogue, type OwnReason } from "../errors.ts";

const broken = new Set([Code.Unavailable, Code.Unknown, Code.Internal, Code.Aborted, Code.Canceled, Code.DataLoss]);

/**
 * Whether a call failed in transit. `broken` are the codes by which Connect reports a connection that broke, a stream that was
 * reset, or a reply that was cut short. An error with a reason came from the service, and an aborted signal proves nothing.
 */
export const wayBroke = (error: ConnectError, { reasonOf }: ErrorCatalogue, signal: AbortSignal | undefined): boolean =>
  !signal?.aborted && !reasonOf(error) && broken.has(error.code);

/**
 * Whether the process at the address has no such RPC: it is of another version, or another service has taken the address
 * over. It looks for the RPC before it does anything, so the call never ran.
 */
export const isUnknownRpc = (error: ConnectError, { reasonOf }: ErrorCatalogue): boolean =>
  error.code === Code.Unimplemented && reasonOf(error)?.reason === "ROUTE_NOT_FOUND";

/**
 * Turns failures in transit into AmbiguousFailure. Every error of our services has a reason. One without a reason arose in
 * transit, so it is unknown whether the call ran. The caller gets UNAVAILABLE (never 500 or 502 over HTTP), and the call is
 * retried by the process that noticed the failure and by no other.
 */
export function withAmbiguousFailures(next: Transport, { errors }: { readonly errors: ErrorCatalogue }): Transport {
  const asFailure = (method: DescMethod, thrown: unknown, signal: AbortSignal | undefined): ConnectError => {
    const error = ConnectError.from(thrown);
    return wayBroke(error, errors, signal) ? new AmbiguousFailure(method, errors, error) : error;
  };
  return {
    async stream(method, signal, timeoutMs, headers, input, contextValues) {
      try {
        const answer = await next.stream(method, signal, timeoutMs, headers, input, contextValues);
        return { ...answer, message: translating(answer.message, (thrown) => asFailure(method, thrown, signal)) };
      } catch (thrown) {
        throw asFailure(method, thrown, signal);
      }
    },
    async unary(method, signal, timeoutMs, headers, input, contextValues) {
      try {
        return await next.unary(method, signal, timeoutMs, headers, input, contextValues);
      } catch (thrown) {
        throw asFailure(method, thrown, signal);
      }
    },
  };
}

/** Yields the messages of a stream. If it ends with an error, throws what `asFailure` makes of that. */
export async function* translating<T>(
  messages: AsyncIterable<T>,
  asFailure: (thrown: unknown) => ConnectError,
): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (thrown) {
    throw asFailure(thrown);
  }
}

/** UNAVAILABLE for a call without a reply: it may or may not have run. Of one that never ran it says so. */
export class AmbiguousFailure extends ConnectError {
  readonly #isAmbiguous = true;
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && #isAmbiguous in value && value.#isAmbiguous;
  }
  constructor({ parent, idempotency }: DescMethod, { rpcError }: ErrorCatalogue, cause: ConnectError) {
    const words = neverRan(cause)
      ? "can't be reached now. Nothing was done. Try again in a second."
      : `did not answer. ${advice(idempotency !== Level.NO_SIDE_EFFECTS)}`;
    const { rawMessage, code, details } = rpcError("UNAVAILABLE", `${parent.name} ${words}`);
    super(rawMessage, code, undefined, undefined, cause);
    this.details = details;
  }
}

/** The error for a call that was not made at all. It is no RpcError, which a service would pass on to its own caller. */
export function notMade({ rpcError }: ErrorCatalogue, reason: OwnReason, message: string): ConnectError {
  const { rawMessage, code, details } = rpcError(reason, message);
  const error = new ConnectError(rawMessage, code);
  error.details = details;
  return error;
}

const unsent = new WeakSet<object>();

/**
 * Remembers that no server worked on the call that failed with this error. So it may be sent to another replica even if it has
 * side effects.
 */
export function markNeverRan<E extends Error>(error: E): E {
  unsent.add(error);
  return error;
}

/**
 * Whether the call certainly never ran: there was no connection to send it on, or the server refused the stream without
 * processing it (RFC 9113 section 8.7), as a server does that is shutting down and has sent its GOAWAY.
 */
export const neverRan = (error: ConnectError): boolean =>
  unsent.has(error) || (error.cause instanceof Error && unsent.has(error.cause));

const running = new WeakMap<object, Promise<boolean>>();

/**
 * Remembers that a service still works on the call that was given up with this error, until `ended` resolves. Until then
 * admission control counts it as under way.
 */
export function markRunning<E extends Error>(error: E, ended: Promise<boolean>): E {
  running.set(error, ended);
  return error;
}

/**
 * Resolves when the call that was given up with this error is over at the service: to true if it was answered, to false if
 * that will never be known. Undefined if the call is over already.
 */
export const stillRunning = (error: unknown): Promise<boolean> | undefined => running.get(error as object);
