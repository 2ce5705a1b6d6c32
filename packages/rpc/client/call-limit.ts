/** Limits the calls that wait for one service. */
import { create, type DescMessage, type DescMethod, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { ErrorCatalogue } from "../errors.ts";
import { notMade } from "./failed-call.ts";

/** Most unanswered calls to one service. */
const MAX_CALLS = 10_000;
/** Most bytes of their request messages. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Counts a call and its bytes. Returns a function to call when it ends. Throws OVERLOADED beyond the limit. */
export type CallLimit = (bytes: number) => () => void;

/** Bounds the calls of this process that wait for one service: a slow service must not fill the memory of its callers. */
export function limitCalls(errors: ErrorCatalogue, maxCalls = MAX_CALLS, maxBytes = MAX_BYTES): CallLimit {
  let calls = 0;
  let waiting = 0;
  return (bytes) => {
    if (calls >= maxCalls || waiting + bytes > maxBytes)
      throw notMade(errors, "OVERLOADED", "Too many calls are under way. Try again in a second.");
    calls++;
    waiting += bytes;
    return () => {
      calls--;
      waiting -= bytes;
    };
  };
}

/** Counts a call by the size of its request. Returns the encoded request, and `leave` to call when the call ends. */
export function enterCall(limit: CallLimit, { input }: DescMethod, init: MessageInitShape<DescMessage>) {
  const message = create(input, init);
  const bytes = toBinary(input, message);
  return { message, bytes, leave: limit(bytes.length) };
}

/** Counts the unary calls of a transport towards the limit. */
export const withCallLimit = (next: Transport, limit: CallLimit): Transport => ({
  ...next,
  async unary(method, signal, timeoutMs, headers, input, contextValues) {
    const { leave } = enterCall(limit, method, input);
    return next.unary(method, signal, timeoutMs, headers, input, contextValues).finally(leave);
  },
});
