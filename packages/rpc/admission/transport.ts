/** Lets in what a service can finish, where calls from outside are passed on to it. */
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { notMade } from "../client/ambiguous-failure.ts";
import type { ErrorCatalogue } from "../errors/catalogue.ts";
import { NOT_BEGUN } from "../errors/translate.ts";
import type { Admission } from "./admission.ts";

export const NO_ROOM = "There is more to do than can be done in time. Nothing was done. Try again in a second.";

/** Such a call may have ended at once, whatever the service has to do. */
const saysNothing: readonly Code[] = [Code.Unavailable, Code.Canceled];

/**
 * Counts the unary calls of a transport and measures them. Beyond the limit they are refused with OVERLOADED, and those that
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
      admission.end(call, true);
      return answer;
    } catch (error) {
      admission.end(call, !saysNothing.includes(ConnectError.from(error).code));
      throw error;
    }
  },
});
