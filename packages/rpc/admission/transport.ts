/** Admission control for calls that are passed on to a service, so that it gets no more than it can finish. */
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { notMade, stillRunning } from "../client/failed-call.ts";
import { type ErrorCatalogue, NOT_BEGUN } from "../errors.ts";
import type { ActiveCall, Admission, Evidence } from "./admission.ts";

export const NO_ROOM = "There is more to do than can be done in time. Nothing was done. Try again in a second.";

/** A call with one of these codes may have ended at once, however busy the service is. */
const noEvidence: readonly Code[] = [Code.Unavailable, Code.Canceled];

/** How long a call counts after its caller has given it up, at most: one hanging replica must not use up all the room. */
const RUNS_ON_MS = 1_000;

/**
 * Counts and measures the unary calls of a transport until the service is done with them. Beyond the limit a call fails with
 * OVERLOADED, and one that can't be answered in time with DEADLINE_EXCEEDED: neither is sent. Streams are not counted, for
 * their duration says nothing of load.
 */
export const withAdmission = (next: Transport, admission: Admission, errors: ErrorCatalogue): Transport => ({
  ...next,
  async unary(method, signal, timeoutMs, headers, input, contextValues) {
    // The request was let in when its headers arrived; its message may have taken long.
    if (admission.isFull(method)) throw notMade(errors, "OVERLOADED", NO_ROOM);
    if (timeoutMs !== undefined && admission.isTooLate(method, timeoutMs))
      throw notMade(errors, "DEADLINE_EXCEEDED", NOT_BEGUN);
    const call = admission.begin(method);
    try {
      const answer = await next.unary(method, signal, timeoutMs, headers, input, contextValues);
      admission.end(call, "all");
      return answer;
    } catch (error) {
      const over = stillRunning(error);
      if (over) endLater(admission, call, over);
      else admission.end(call, noEvidence.includes(ConnectError.from(error).code) ? "nothing" : "at least");
      throw error;
    }
  },
});

/** Otherwise a caller that gives up its calls could make a service do any amount of work. */
function endLater(admission: Admission, call: ActiveCall, over: Promise<boolean>): void {
  let hasEnded = false;
  const end = (evidence: Evidence) => {
    if (!hasEnded) admission.end(call, evidence);
    hasEnded = true;
    clearTimeout(late);
  };
  const late = setTimeout(end, RUNS_ON_MS, "at least").unref();
  void over.then((isAnswered) => end(isAnswered ? "at least" : "nothing"));
}
