/** How many calls may wait for one service. */
import { type DescMessage, type DescMethod, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { ErrorCatalogue } from "../errors/catalogue.ts";
import { messageOf } from "../message.ts";
import { notMade } from "./ambiguous-failure.ts";

/** Most calls to one service that have not been answered. */
const MAX_CALLS = 10_000;
/** Most bytes of their request messages. */
const MAX_BYTES = 64 * 1024 * 1024;

export interface CallLimit {
  /** Counts a call of so many bytes and returns what has to be called when it ends. Throws OVERLOADED beyond the limit. */
  enter(bytes: number): () => void;
}

/** Bounds the calls that one process waits for at one service: one that is slow must not fill the memory of its callers. */
export function limitCalls(errors: ErrorCatalogue, maxCalls = MAX_CALLS, maxBytes = MAX_BYTES): CallLimit {
  let calls = 0;
  let waiting = 0;
  return {
    enter(bytes) {
      if (calls >= maxCalls || waiting + bytes > maxBytes)
        throw notMade(errors, "OVERLOADED", "Too many calls are under way. Try again in a second.");
      calls++;
      waiting += bytes;
      return () => {
        calls--;
        waiting -= bytes;
      };
    },
  };
}

/** Counts a call by its request, which it gives back encoded, with what has to be called when the call ends. */
export function enterCall(limit: CallLimit, { input }: DescMethod, init: MessageInitShape<DescMessage>) {
  const message = messageOf(input, init);
  const bytes = toBinary(input, message);
  return { message, bytes, leave: limit.enter(bytes.length) };
}

/** Lets the unary calls of a transport count. */
export const withCallLimit = (next: Transport, limit: CallLimit): Transport => ({
  ...next,
  async unary(method, signal, timeoutMs, headers, input, contextValues) {
    const { leave } = enterCall(limit, method, input);
    return next.unary(method, signal, timeoutMs, headers, input, contextValues).finally(leave);
  },
});
