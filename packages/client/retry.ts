/** Retries calls that are safe to repeat. */
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { type PetstoreError, petstoreError } from "./errors.ts";

const MAX_ATTEMPTS = 4;
const FIRST_PAUSE_MS = 100;

/** The field that makes a create safe to repeat (AIP-155). */
const KEY = "requestId";

export interface RetryDeps {
  readonly clock: () => number;
  readonly random: () => number;
  /** Resolves after `ms` milliseconds, or when the signal is aborted. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/**
 * Gives every create its own idempotency key. Retries reads and creates that got no answer or the answer "not now"; retries
 * updates and deletions only if their rate was exceeded, because then nothing was done. Pauses are random (full jitter), but
 * never shorter than the petstore asks for. If a pause would end after the call's deadline, there is no retry. A create
 * that may have succeeded in an earlier attempt fails as that one did, unless a later attempt learns the outcome.
 */
export const withRetry = (next: Transport, { clock, random, sleep }: RetryDeps): Transport => ({
  stream: (...call) => next.stream(...call), // not copied: a transport may be an instance of a class
  async unary(method, signal, timeoutMs, header, input, contextValues) {
    const keyed = withKey(method, input);
    const isRepeatable = method.idempotency === Level.NO_SIDE_EFFECTS || hasKey(method);
    const deadline = timeoutMs === undefined ? Number.POSITIVE_INFINITY : clock() + timeoutMs;
    let inDoubt: PetstoreError | undefined;
    for (let attempt = 1; ; attempt++) {
      const leftMs = timeoutMs === undefined ? undefined : Math.max(1, deadline - clock());
      try {
        return await next.unary(method, signal, leftMs, header, keyed, contextValues);
      } catch (thrown) {
        const error = petstoreError(thrown, { desc: method.input, init: keyed });
        const jitter = random() * FIRST_PAUSE_MS * 2 ** attempt;
        const pauseMs = Math.max(jitter, ("retryAfterMs" in error && error.retryAfterMs) || 0);
        const isWorthIt = attempt < MAX_ATTEMPTS && passes(error, isRepeatable) && clock() + pauseMs < deadline;
        if (!isWorthIt || signal?.aborted) throw inDoubt && BEFORE_KEY.includes(error.cause.code) ? inDoubt : error;
        if (hasKey(method) && error.reason !== "RATE_LIMITED") inDoubt = error;
        await sleep(pauseMs, signal);
        if (signal?.aborted) throw petstoreError(ConnectError.from(signal.reason, Code.Canceled));
      }
    }
  },
});

/** Whether the same call may succeed a moment later, and does no harm. */
function passes({ reason }: PetstoreError, isRepeatable: boolean): boolean {
  if (reason === "RATE_LIMITED") return true;
  return isRepeatable && (reason === "UNAVAILABLE" || reason === "OVERLOADED" || reason === "UNREACHABLE");
}

/** The codes of refusals that come before a key is looked at, as by RATE_LIMITED: an earlier attempt may have succeeded. */
const BEFORE_KEY: readonly Code[] = [
  Code.Unauthenticated,
  Code.PermissionDenied,
  Code.ResourceExhausted,
  Code.Aborted,
  Code.Internal,
];

/** The contract decides: what a caller passes may have members that the message does not have, and that are not sent. */
const hasKey = ({ input }: DescMethodUnary): boolean => KEY in input.field;

function withKey<T extends object>(method: DescMethodUnary, init: T): T {
  if (!hasKey(method) || (init as Record<string, unknown>)[KEY]) return init;
  return { ...init, [KEY]: newKey() };
}

/** 128 random bits. Not `randomUUID`, which pages have over https only. */
const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
