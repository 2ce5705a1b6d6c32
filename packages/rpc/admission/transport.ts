/** Lets in what a service can finish, where calls from outside are passed on to it. */
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { notMade } from "../client/ambiguous-failure.ts";
import { stillRunning } from "../client/still-running.ts";
import type { ErrorCatalogue } from "../errors/catalogue.ts";
import { NOT_BEGUN } from "../errors/translate.ts";
import type { Admission, Admitted, Tells } from "./admission.ts";

export const NO_ROOM = "There is more to do than can be done in time. Nothing was done. Try again in a second.";

/** Such a call may have ended at once, whatever the service has to do. */
const saysNothing: readonly Code[] = [Code.Unavailable, Code.Canceled];

/** So long a call counts whose caller has given it up: one replica that hangs must not take the room of all. */
const RUNS_ON_MS = 1_000;

/**
 * Counts the unary calls of a transport, until the service is done with them, and measures them. Beyond the limit they are refused with OVERLOADED, and those that
 * can't be answered in time with DEADLINE_EXCEEDED: they are not made. Streams have no delay, and are not counted.
 */
export const withAdmission = (next: Transport, admission: Admission, errors: ErrorCatalogue): Transport => ({
  ...next,
  async unary(method, signal, timeoutMs, headers, input, contextValues) {
    // Who calls was asked when the request came; its message may have taken long.
    if (admission.isFull(method)) throw notMade(errors, "OVERLOADED", NO_ROOM);
    if (timeoutMs !== undefined && admission.isHopeless(method, timeoutMs))
      throw notMade(errors, "DEADLINE_EXCEEDED", NOT_BEGUN);
    const call = admission.begin(method);
    try {
      const answer = await next.unary(method, signal, timeoutMs, headers, input, contextValues);
      admission.end(call, "all");
      return answer;
    } catch (error) {
      const over = stillRunning(error);
      if (over) endLater(admission, call, over);
      else admission.end(call, saysNothing.includes(ConnectError.from(error).code) ? "nothing" : "at least");
      throw error;
    }
  },
});

/** Else who gives up what he has asked for could have a service do as much as he likes. */
function endLater(admission: Admission, call: Admitted, over: Promise<boolean>): void {
  let hasEnded = false;
  const end = (tells: Tells) => {
    if (!hasEnded) admission.end(call, tells);
    hasEnded = true;
    clearTimeout(late);
  };
  const late = setTimeout(end, RUNS_ON_MS, "at least").unref();
  void over.then((isAnswered) => end(isAnswered ? "at least" : "nothing"));
}
