/**
 * A call: the name of its RPC, its context (its deadline, its request id, its caller and its trace), how that is passed to other
 * services, and what is told at its end.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import type { CALL_LABELS } from "@petstore/metrics/declaration";
import type { Histogram } from "@petstore/metrics/registry";
import type { Clock, Runtime } from "@petstore/runtime/clock";
import type { Rate } from "@petstore/runtime/rate";
import { TRACEPARENT, type TraceContext, traceHeaders } from "@petstore/trace/context";
import { isRequestId, newWorkId, REQUEST_ID_HEADER, requestIdOf } from "connect-transcoder/request-id";
import { DeadlineExpired } from "./errors.ts";

/** Headers that only the system's own processes may set. An endpoint for outside callers replaces theirs. */
export const SECRET_HEADER = "x-internal-secret";
export const CALLER_HEADER = "x-internal-caller";
/** What the caller has seen, and in answers what the service has: see `createSeen`. */
export const SEEN_HEADER = "x-internal-seen";

/** An authenticated caller. */
export interface Principal {
  /** Identifies one caller, and never changes. Visible ASCII, because it is sent as a header. */
  readonly id: string;
  /** How much the caller may send, if that differs from the default. */
  readonly rate?: Rate | undefined;
}

/** The caller if no credentials are required. */
export const ANONYMOUS: Principal = { id: "anonymous" };
/** The name under which a caller is counted: its id, or its address if it is anonymous. No id of a principal has a space. */
export const callerName = (principal: Principal, addressOf: () => string): string =>
  principal === ANONYMOUS ? `address ${addressOf()}` : principal.id;

/** The name of an RPC, "package.Service/Method". */
export const rpcName = ({ parent, name }: DescMethod): string => `${parent.typeName}/${name}`;

/** What calls for a request say of it. */
export type Asked = { readonly id: string } & Pick<CallContext, "caller" | "trace">;

/** Headers of a call on behalf of a request's caller. */
export const callHeaders = ({ id, caller, trace }: Asked): Record<string, string> => ({
  [REQUEST_ID_HEADER]: id,
  [CALLER_HEADER]: caller,
  ...(trace && traceHeaders(trace)),
});

/**
 * The headers of a call that is made. Most callers pass a plain object with names in lower case, and creating Headers from it
 * would cost more than everything done with them.
 */
export const plainHeaders = (init: HeadersInit | undefined): Record<string, string> =>
  init && Object.getPrototypeOf(init) === Object.prototype
    ? (init as Record<string, string>)
    : Object.fromEntries(new Headers(init));

export interface CallContext {
  /** When the caller gives up, on the process's clock (milliseconds). */
  readonly deadline: number;
  readonly requestId: string;
  /** The id of the principal that called the public RPC, however many services are in between. */
  readonly caller: string;
  /** Where the work is in a trace that is recorded. */
  readonly trace?: TraceContext | undefined;
  /**
   * Whether the work may have changed something, and what it has seen, if its caller asks for that. Copies of the context
   * share it, for a step with a time of its own.
   */
  readonly progress: { hasBegun: boolean; seen?: string | undefined };
  /** Aborts when the caller has gone. Only a read has one, because what was begun is finished all the same. */
  readonly signal?: AbortSignal | undefined;
}

/** One RPC, as its handler sees it. */
export interface Call extends CallContext {
  readonly headers: Headers;
  /** Sent with a response, not with an error. */
  readonly responseHeaders: Headers;
}

/** The request id from the caller if it is valid, else the id of the trace, else a new one. */
export function requestIdIn(headers: Headers, random: Runtime["random"], trace?: TraceContext): string {
  const given = headers.get(REQUEST_ID_HEADER);
  if (trace && !isRequestId(given ?? "")) return trace.traceId;
  return requestIdOf(given, headers.get(TRACEPARENT), random);
}

type Incoming = Pick<CallContext, "trace" | "signal"> & { headers: Headers; timeoutMs: number | undefined };
type Admitted = { maxTimeoutMs: number; principal: Principal; seen?: string | undefined };

export function openCall(
  { headers, trace, timeoutMs, signal }: Incoming,
  { clock, random, maxTimeoutMs, principal, seen }: Pick<Runtime, "clock" | "random"> & Admitted,
): CallContext {
  return {
    deadline: clock() + Math.min(timeoutMs ?? maxTimeoutMs, maxTimeoutMs),
    requestId: requestIdIn(headers, random, trace),
    caller: principal.id,
    trace,
    progress: { hasBegun: false, seen },
    signal,
  };
}

/** Time for a piece of background work. */
const BACKGROUND_MS = 10_000;

/** The context of work that no request asked for. */
export const background = ({ clock, random }: Pick<Runtime, "clock" | "random">, kind: string): CallContext => ({
  deadline: clock() + BACKGROUND_MS,
  requestId: newWorkId(random, kind),
  caller: "system",
  progress: { hasBegun: false },
});

/**
 * Longest time of one call to another service. It is longer than it takes to detect a silent service, and leaves a request
 * of 10 s enough time to report that there was no answer.
 */
const CALL_MS = 3_000;

/**
 * Options for a call to another service: the remaining time, at most `CALL_MS`, and the same request id, caller and trace. Throws
 * DeadlineExpired when no time remains, as the store does: a process that slept must not send a call that is out of date.
 */
export function outgoing(clock: Runtime["clock"], { deadline, requestId: id, caller, trace }: CallContext) {
  const left = deadline - clock();
  if (left <= 0) throw new DeadlineExpired("the deadline had passed before another service was asked");
  return { timeoutMs: Math.min(CALL_MS, left), headers: callHeaders({ id, caller, trace }) };
}

/** The longest time that a timer of Node can be set to, about 25 days. Node fires a longer timer at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The largest value of a timeout in gRPC: eight digits ("gRPC over HTTP2", TimeoutValue). */
const LONGEST_TIMEOUT_MS = 99_999_999;

/**
 * The time until which work is worth doing: `ms` milliseconds from now, or without limit if that is undefined. Processes send
 * each other the remaining time, never an instant: clocks differ.
 */
export type Deadline = ReturnType<typeof deadlineAfter>;

export function deadlineAfter(clock: Clock, ms = Number.POSITIVE_INFINITY) {
  const at = clock() + ms; // infinite if there is no limit
  /** Negative after it. */
  const remaining = () => at - clock();
  /**
   * Of a call that is made now: the remaining whole milliseconds, at least 1. Undefined if there is no limit, or one of more
   * digits than gRPC has for it: then the call ends when its caller does.
   */
  const timeoutMs = () => {
    const left = Math.ceil(remaining());
    return left > LONGEST_TIMEOUT_MS ? undefined : Math.max(1, left) || 1; // not NaN
  };
  return { at, remaining, timeoutMs };
}

/**
 * Told of each call at its end, by whoever serves or makes it: how long it took, in milliseconds, and why it failed. `context`
 * is known of calls that began to be served.
 */
export type CallEnded = (
  method: DescMethod,
  ms: number,
  failure: ConnectError | undefined,
  context?: CallContext,
) => void;

/** How long calls took, as a metric. */
export function recordCalls(durations: Histogram<typeof CALL_LABELS>): CallEnded {
  const names = new WeakMap<DescMethod, string>(); // contracts come and go
  const nameOf = (method: DescMethod): string => {
    const known = names.get(method) ?? rpcName(method);
    names.set(method, known);
    return known;
  };
  const statusOf = (failure: ConnectError | undefined) => (failure ? codeToString(failure.code) : "");
  return (method, ms, failure, context) =>
    durations.of("connectrpc", nameOf(method), statusOf(failure)).record(ms / 1000, context?.trace);
}
