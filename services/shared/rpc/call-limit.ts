import { notMade } from "./lost-reply.ts";

/** Calls to one service that have not been answered. */
const MAX_CALLS = 10_000;
/** Bytes of their messages. */
const MAX_BYTES = 64 * 1024 * 1024;

export interface CallLimit {
  /** Takes a place, and gives what leaves it again. Throws OVERLOADED when there is none. */
  enter(bytes: number): () => void;
}

/** Bounds the calls that one process waits for at one service, so that a service in trouble costs no memory without end. */
export function limitCalls(maxCalls = MAX_CALLS, maxBytes = MAX_BYTES): CallLimit {
  let calls = 0;
  let waiting = 0;
  return {
    enter(bytes) {
      if (calls >= maxCalls || waiting + bytes > maxBytes)
        throw notMade("OVERLOADED", "Too many calls are under way. Try again in a second.");
      calls++;
      waiting += bytes;
      return () => {
        calls--;
        waiting -= bytes;
      };
    },
  };
}
