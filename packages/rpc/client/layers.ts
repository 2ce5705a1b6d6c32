/**
 * The layers between a client and what reaches the service. `pipeline` puts around any transport, from the caller inwards:
 * durations, retry, ambiguous failures. `createSeen` is for a process through which all calls of its callers pass.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { ConnectError, type Transport } from "@connectrpc/connect";
import type { Runtime } from "@petstore/runtime/clock";
import { type CallEnded, deadlineAfter, plainHeaders, SEEN_HEADER } from "../call.ts";
import { advice, type ErrorCatalogue } from "../errors.ts";
import { isReplayable, neverRan, wayBroke } from "./failed-call.ts";

export interface PipelineDeps extends Pick<Runtime, "clock" | "random" | "sleep"> {
  readonly errors: ErrorCatalogue;
  readonly callEnded?: CallEnded | undefined;
}

export const pipeline = (innermost: Transport, deps: PipelineDeps): Transport =>
  withDurations(withRetry(withAmbiguousFailures(innermost, deps), deps), deps);

/** Tells how long calls took, with all their attempts; streams take until their last message was read. */
export function withDurations(
  next: Transport,
  { clock, callEnded }: Pick<PipelineDeps, "clock" | "callEnded">,
): Transport {
  if (!callEnded) return next;
  return around(next, (method) => {
    const since = clock();
    return (thrown) => {
      callEnded(method, clock() - since, thrown === undefined ? undefined : ConnectError.from(thrown));
      return thrown;
    };
  });
}

const MAX_ATTEMPTS = 3;
/** Retries may be this part of the traffic, so that they don't overload a service in trouble. */
const SHARE = 0.1;
/** Retries that may come at once after a quiet time. */
const BURST = 10;
const FIRST_PAUSE_MS = 50;

/**
 * Repeats a call that failed ambiguously, if it is replayable. Pauses have full jitter ("Exponential Backoff And Jitter"), and
 * all calls share a budget of retries (as in gRPC's retry throttling, A6). An error that a service answered with is not
 * retried here: the process nearest to the failure has done so.
 */
function withRetry(next: Transport, { clock, random, sleep }: PipelineDeps): Transport {
  let budget = BURST;
  return {
    ...next,
    async unary(method, signal, timeoutMs, headers, input, contextValues) {
      const deadline = deadlineAfter(clock, timeoutMs);
      budget = Math.min(BURST, budget + SHARE);
      let inDoubt: AmbiguousFailure | undefined;
      for (let attempt = 1; ; attempt++) {
        try {
          return await next.unary(method, signal, deadline.timeoutMs(), headers, input, contextValues);
        } catch (error) {
          const pause = random() * FIRST_PAUSE_MS * 4 ** (attempt - 1);
          const isLost = error instanceof AmbiguousFailure;
          // That the last attempt never ran says nothing of those before it.
          if (isLost && !neverRan(error)) inDoubt = error;
          const again = isLost && isReplayable(method, input) && attempt < MAX_ATTEMPTS;
          if (!again || budget < 1 || pause >= deadline.remaining() || signal?.aborted)
            throw isLost ? (inDoubt ?? error) : error;
          budget -= 1;
          await sleep(pause, signal);
        }
      }
    },
  };
}

/**
 * Turns failures in transit into AmbiguousFailure. Every error of our services has a reason. One without a reason arose in
 * transit, so it is unknown whether the call ran. The caller gets UNAVAILABLE (never 500 or 502 over HTTP), and the call is
 * retried by the process that noticed the failure and by no other.
 */
export function withAmbiguousFailures(next: Transport, { errors }: { readonly errors: ErrorCatalogue }): Transport {
  return around(next, (method, signal) => (thrown) => {
    if (thrown === undefined) return undefined;
    const error = ConnectError.from(thrown);
    return wayBroke(error, errors, signal) ? new AmbiguousFailure(method, errors, error) : error;
  });
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

/** Told of the end of a call, and of what was thrown if it failed. Returns what is thrown in its place. */
type End = (thrown?: unknown) => unknown;

/** A layer that does something at the end of each call. A stream ends when its last message was read, or its reader leaves. */
function around(next: Transport, begin: (method: DescMethod, signal: AbortSignal | undefined) => End): Transport {
  return {
    async unary(method, signal, ...call) {
      const end = begin(method, signal);
      try {
        const answer = await next.unary(method, signal, ...call);
        end();
        return answer;
      } catch (thrown) {
        throw end(thrown);
      }
    },
    async stream(method, signal, ...call) {
      const end = begin(method, signal);
      try {
        const answer = await next.stream(method, signal, ...call);
        return { ...answer, message: followed(answer.message, end) };
      } catch (thrown) {
        throw end(thrown);
      }
    },
  };
}

async function* followed<T>(messages: AsyncIterable<T>, end: End): AsyncIterable<T> {
  let isOver = false;
  try {
    yield* messages;
  } catch (thrown) {
    isOver = true;
    throw end(thrown);
  } finally {
    if (!isOver) end();
  }
}

/**
 * No answer is older than an earlier one: a process sends with its calls what the answers of services said that they had
 * seen, and no service reads anything older, whichever of its replicas it is. Returns a layer for the calls to each service,
 * because what one of them says may follow from what another one has done. Opaque here, but for what `Progress.seen` of
 * `packages/store/port.ts` says.
 */
export function createSeen(): (next: Transport) => Transport {
  const latest = new Map<string, string>();
  let all = "";
  const add = (init: HeadersInit | undefined): Record<string, string> => ({
    ...plainHeaders(init),
    [SEEN_HEADER]: all,
  });
  /** Takes what an answer tells out of its headers, so that nobody passes it on. */
  function take(headers: Headers): void {
    const seen = headers.get(SEEN_HEADER);
    if (seen === null) return;
    headers.delete(SEEN_HEADER);
    const data = seen.slice(0, seen.indexOf(":"));
    if (seen <= (latest.get(data) ?? "")) return;
    latest.set(data, seen);
    all = [...latest.values()].join(" ");
  }
  return (next) => ({
    stream: (method, signal, timeoutMs, init, input, contextValues) =>
      next.stream(method, signal, timeoutMs, add(init), input, contextValues),
    async unary(method, signal, timeoutMs, init, input, contextValues) {
      try {
        const answer = await next.unary(method, signal, timeoutMs, add(init), input, contextValues);
        take(answer.header);
        return answer;
      } catch (error) {
        if (error instanceof ConnectError) take(error.metadata);
        throw error;
      }
    },
  });
}
