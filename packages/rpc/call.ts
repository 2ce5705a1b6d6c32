/** What a call is done under: until when, for which request and in whose name; and how that travels on. */
import type { Runtime } from "@petstore/runtime/clock";
import type { Rate } from "@petstore/runtime/rate";
import { isRequestId, newRequestId, REQUEST_ID_HEADER } from "connect-transcoder/request/request-id";
import { deadlineAt } from "./deadline.ts";
import { DeadlineExpired } from "./errors/translate.ts";

/** Headers that only the system's own processes may set: what lets calls in from outside sends its own, whatever its callers send. */
export const SECRET_HEADER = "x-internal-secret";
export const CALLER_HEADER = "x-internal-caller";

/** Who calls: what authentication finds out. */
export interface Principal {
  /** Names one caller, for good. Visible ASCII: it travels as a header. */
  readonly id: string;
  /** How much it may send, where that is not as much as others. */
  readonly rate?: Rate | undefined;
}

/** The caller where no credentials are asked for. */
export const ANONYMOUS: Principal = { id: "anonymous" };
/** Who is counted as one caller: who has shown credentials, or an address. No id of a principal has a space. */
export const callerName = (principal: Principal, addressOf: () => string): string =>
  principal === ANONYMOUS ? `address ${addressOf()}` : principal.id;
/** The system itself, in work that nobody asked for. */
const SYSTEM: Principal = { id: "system" };

/** Headers of a call that is made in the name of whoever made a request. */
export const callHeaders = ({ id, caller }: { readonly id: string; readonly caller: string }) => ({
  [REQUEST_ID_HEADER]: id,
  [CALLER_HEADER]: caller,
});

/** What work is done under: how long it may take, for which request, and in whose name. */
export interface CallContext {
  /** When the caller gives up, on the process's clock (milliseconds). */
  readonly deadline: number;
  readonly requestId: string;
  /** The id of the principal: the caller of the public RPC, however many services are between. */
  readonly caller: string;
}

/** One RPC as its handler sees it. */
export interface Call extends CallContext {
  readonly headers: Headers;
  /** Sent with the answer, not with an error. */
  readonly responseHeaders: Headers;
}

/** The id that the caller gave its request if that can stand in a log, or one of our own. */
export function requestIdOf(headers: Headers, random: Runtime["random"]): string {
  const given = headers.get(REQUEST_ID_HEADER) ?? "";
  return isRequestId(given) ? given : newRequestId(random);
}

interface Incoming {
  readonly headers: Headers;
  readonly timeoutMs: number | undefined;
}

export function openCall(
  { headers, timeoutMs }: Incoming,
  {
    clock,
    random,
    maxTimeoutMs,
    principal,
  }: Pick<Runtime, "clock" | "random"> & { maxTimeoutMs: number; principal: Principal },
): CallContext {
  return {
    deadline: clock() + Math.min(timeoutMs ?? maxTimeoutMs, maxTimeoutMs),
    requestId: requestIdOf(headers, random),
    caller: principal.id,
  };
}

/** Time for a piece of work that no request asked for. */
const BACKGROUND_MS = 10_000;

/** For work that no request asked for. */
export const background = ({ clock, random }: Pick<Runtime, "clock" | "random">, kind: string): CallContext => ({
  deadline: clock() + BACKGROUND_MS,
  requestId: newRequestId(random, kind),
  caller: SYSTEM.id,
});

/**
 * Time of one call to another service. It is longer than a silent one takes to be found out, and leaves a request of 10 s
 * time to say that it has no answer.
 */
const CALL_MS = 3_000;

/**
 * Options for a call to another service: what remains of its time, `CALL_MS` at most, the same request id and caller.
 * Throws when nothing remains, as the store does: a process that slept must not send what it meant to send before.
 */
export function outgoing(clock: Runtime["clock"], { deadline, requestId: id, caller }: CallContext) {
  const left = deadlineAt(clock, deadline).remaining();
  if (left <= 0) throw new DeadlineExpired("the deadline had passed before another service was asked");
  return { timeoutMs: Math.min(CALL_MS, left), headers: callHeaders({ id, caller }) };
}
