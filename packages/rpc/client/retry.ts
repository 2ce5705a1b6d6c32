/** Repeats calls that got no reply, if they may be repeated. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import type { Runtime } from "@petstore/runtime/clock";
import { field as fieldOption } from "connect-transcoder/gen/transcoder/v1/annotations_pb.js";
import { deadlineAfter } from "../call.ts";
import { AmbiguousFailure, neverRan } from "./failed-call.ts";

const MAX_ATTEMPTS = 3;
/** Retries may be this part of the traffic, so that they don't overload a service in trouble. */
const SHARE = 0.1;
/** Retries that may come at once after a quiet time. */
const BURST = 10;
const FIRST_PAUSE_MS = 50;

const keyFields = new WeakMap<DescMethod, string | undefined>();

/** The field of the request message for an idempotency key, if the method takes one. */
function keyField(method: DescMethod): string | undefined {
  if (!keyFields.has(method)) {
    const field = method.input.fields.find((f) => getOption(f, fieldOption).header === "Idempotency-Key");
    keyFields.set(method, field?.localName);
  }
  return keyFields.get(method);
}

/** Whether the request carries an idempotency key. */
export function isKeyed(method: DescMethod, input: object): boolean {
  const name = keyField(method);
  return name !== undefined && (input as Record<string, unknown>)[name] !== undefined;
}

/** Whether running a call twice has the effect of running it once: reads, idempotent methods, creates with a key. */
export const isReplayable = (method: DescMethod, input: object): boolean =>
  method.idempotency === Level.NO_SIDE_EFFECTS || method.idempotency === Level.IDEMPOTENT || isKeyed(method, input);

/**
 * Repeats a call that failed ambiguously, if it is replayable. Pauses have full jitter ("Exponential Backoff And Jitter"), and
 * all calls share a budget of retries (as in gRPC's retry throttling, A6). An error that a service answered with is not
 * retried here: the process nearest to the failure has done so.
 */
export function withRetry(
  next: Transport,
  { clock, random, sleep }: Pick<Runtime, "clock" | "random" | "sleep">,
): Transport {
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
