/** Calls that failed on the way: they may or may not have run. */
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import type { ErrorCatalogue, OwnReason } from "../errors/catalogue.ts";
import { advice } from "../errors/translate.ts";

const broken = new Set([Code.Unavailable, Code.Unknown, Code.Internal, Code.Aborted, Code.Canceled, Code.DataLoss]);

/**
 * Whether a failure came from the way there or back. `broken` are the codes by which Connect reports a connection that broke, a
 * stream that was reset, or a reply cut short; a service gives a reason, and what its caller gave up says nothing.
 */
export const wayBroke = (error: ConnectError, { reasonOf }: ErrorCatalogue, signal: AbortSignal | undefined): boolean =>
  !signal?.aborted && !reasonOf(error) && broken.has(error.code);

/**
 * A service of ours gives a reason with every failure. A failure without one came from the way there or back, so nobody
 * knows whether the call ran: that is "unavailable" (never 500 or 502 over HTTP), and an
 * AmbiguousFailure, so that it is retried where it was noticed and nowhere else.
 */
export function withAmbiguousFailures(next: Transport, { errors }: { readonly errors: ErrorCatalogue }): Transport {
  const told = (method: DescMethod, thrown: unknown, signal: AbortSignal | undefined): ConnectError => {
    const error = ConnectError.from(thrown);
    return wayBroke(error, errors, signal) ? new AmbiguousFailure(method, errors, error) : error;
  };
  return {
    async stream(method, signal, timeoutMs, headers, input, contextValues) {
      try {
        const answer = await next.stream(method, signal, timeoutMs, headers, input, contextValues);
        return { ...answer, message: translating(answer.message, (thrown) => told(method, thrown, signal)) };
      } catch (thrown) {
        throw told(method, thrown, signal);
      }
    },
    async unary(method, signal, timeoutMs, headers, input, contextValues) {
      try {
        return await next.unary(method, signal, timeoutMs, headers, input, contextValues);
      } catch (thrown) {
        throw told(method, thrown, signal);
      }
    },
  };
}

/** Messages as they come, and what is made of the error that they end with. */
export async function* translating<T>(
  messages: AsyncIterable<T>,
  told: (thrown: unknown) => ConnectError,
): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (thrown) {
    throw told(thrown);
  }
}

/** No answer came: the call may or may not have run. */
export class AmbiguousFailure extends ConnectError {
  readonly #isAmbiguous = true;
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && #isAmbiguous in value && value.#isAmbiguous;
  }
  constructor({ parent, idempotency }: DescMethod, { rpcError }: ErrorCatalogue, cause: ConnectError) {
    const whatNow = advice(idempotency !== Level.NO_SIDE_EFFECTS);
    const { rawMessage, code, details } = rpcError("UNAVAILABLE", `${parent.name} did not answer. ${whatNow}`);
    super(rawMessage, code, undefined, undefined, cause);
    this.details = details;
  }
}

/** A call that was not made at all. It is no fault of this process: one that makes calls of its own can't pass it on. */
export function notMade({ rpcError }: ErrorCatalogue, reason: OwnReason, message: string): ConnectError {
  const { rawMessage, code, details } = rpcError(reason, message);
  const error = new ConnectError(rawMessage, code);
  error.details = details;
  return error;
}
