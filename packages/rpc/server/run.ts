/** One call in the dispatcher: its context, its validation, the error that its caller gets, and its line in the log. */
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import type { Runtime } from "@petstore/runtime/clock";
import { type TraceContext, traceIds } from "@petstore/trace/context";
import { validate } from "connect-transcoder/validation";
import type { Admission } from "../admission/admission.ts";
import { type CallContext, type CallEnded, openCall, type Principal } from "../call.ts";
import {
  type ErrorCatalogue,
  type ErrorTranslation,
  NOT_BEGUN,
  outOfTime,
  type RpcError,
  violationError,
} from "../errors.ts";
import type { StreamHandler, UnaryHandler } from "./handlers.ts";
import { isUnary, type RequestOrigin, type Served } from "./routes.ts";

/** What arrives with a call besides its message. */
export interface Incoming {
  readonly headers: Headers;
  /** Milliseconds until the caller gives up; undefined when it set no limit. */
  readonly timeoutMs: number | undefined;
  /** Aborts when the caller of a unary call has gone. */
  readonly signal?: AbortSignal | undefined;
  /** Whether the caller has proved to be one of the system's own processes. By default the secret in the headers decides. */
  readonly isPeer?: boolean | undefined;
  /** Who calls, if `admit` was called already. By default the dispatcher calls it. */
  readonly principal?: Principal | undefined;
  /** Whether it comes from a proxy that the operator trusts. */
  readonly isProxy?: boolean | undefined;
  /** Where the call is in a trace that is recorded. */
  readonly trace?: TraceContext | undefined;
}

export interface IncomingStream extends Incoming {
  /** The network that the request came from, and its response. */
  readonly origin?: RequestOrigin | undefined;
  /** Calls `end` when the caller has gone, at once if it already has. */
  readonly whenGone: (end: () => void) => void;
  /** Receives the headers of the response. */
  readonly responseHeaders: Headers;
}

export interface Admitted {
  readonly principal: Principal;
  /** What a caller of the system's own has seen; undefined if it does not ask for what the service has. */
  readonly seen: string | undefined;
}

/** A method that is served. */
export interface Entry {
  readonly method: Served;
  readonly handler: UnaryHandler | StreamHandler;
  /** `maxCalls` or `streamLimits` bounds how many run at a time. */
  readonly limited: boolean;
  /** It may be refused in favour of other calls. */
  readonly isSheddable: boolean;
  readonly isDiagnostic: boolean;
}

/** A timer may fire this many milliseconds before the deadline that it was set to. */
const EARLY_MS = 2;

export const methodName = (method: DescMethod): string => `${method.parent.typeName}/${method.name}`;

export interface RunOptions {
  readonly deps: Pick<Runtime, "clock" | "random" | "log">;
  readonly errors: ErrorCatalogue;
  readonly translation: ErrorTranslation;
  readonly admission: Admission;
  /** While this many unary calls run, new ones of public services are refused. */
  readonly maxCalls: number;
  readonly callEnded: CallEnded;
}

export interface Run {
  readonly call: CallContext;
  /** When the call began, on the process's clock (milliseconds). */
  readonly started: number;
  readonly method: Served;
}

export type Runs = ReturnType<typeof createRuns>;

export function createRuns({ deps, errors, translation, admission, maxCalls, callEnded }: RunOptions) {
  const { rpcError } = errors;
  const { isBug, toRpcError } = translation;

  /** `hasLeft`: nobody waited for the answer any more, so that no failure of a service is to be seen in it. */
  function logFailure(line: object, failure: RpcError, thrown: unknown, hasLeft = false): void {
    if (isBug(thrown)) deps.log.error({ ...line, err: failure.cause }, failure.rawMessage);
    else if (failure.code === Code.Unavailable && !hasLeft)
      deps.log.warn({ ...line, cause: oneLine(failure.cause) }, failure.rawMessage);
    else deps.log.debug({ ...line, code: Code[failure.code] }, failure.rawMessage);
  }

  /** What a call fails with that is not begun. */
  function refused(method: DescMethod, failure: RpcError): RpcError {
    callEnded(method, 0, failure);
    return failure;
  }

  /** Throws OVERLOADED or DEADLINE_EXCEEDED for a call that is not begun. */
  function begin({ method, limited }: Entry, incoming: Incoming, admitted: Admitted, maxTimeoutMs: number): Run {
    if (limited && isUnary(method) && admission.underWay() >= maxCalls)
      throw refused(method, rpcError("OVERLOADED", "The service has too much to do. Try again in a second."));
    const { headers, timeoutMs, trace } = incoming;
    const signal = writes({ method }) ? undefined : incoming.signal;
    const call = openCall({ headers, trace, timeoutMs, signal }, { ...deps, ...admitted, maxTimeoutMs });
    const started = deps.clock(); // not before its deadline is known, or a call without time left could seem to have some
    if (admission.isTooLate(method, call.deadline - started))
      throw refused(method, rpcError("DEADLINE_EXCEEDED", NOT_BEGUN));
    return { call, started, method };
  }

  /** Throws VALIDATION_FAILED. */
  function validated({ method }: Run, request: Message): void {
    const violations = validate(method.input, request);
    if (violations.length > 0) throw violationError(errors, violations);
  }

  const writes = ({ method }: Pick<Run, "method">) => method.idempotency !== Level.NO_SIDE_EFFECTS;
  /** Whether the caller's deadline has passed, as far as a timer can tell. */
  const isLate = ({ call }: Run) => deps.clock() >= call.deadline - EARLY_MS;
  const late = (run: Run) => rpcError("DEADLINE_EXCEEDED", outOfTime(writes(run)));

  /** The error that the caller gets. */
  const failed = (run: Run, thrown: unknown): RpcError =>
    toRpcError(thrown, { requestId: run.call.requestId, isLate: isLate(run), writes: writes(run) });

  /** To be called once, at the end of a call that was begun. */
  function end({ method, call, started }: Run, failure: RpcError | undefined, thrown: unknown): void {
    const { requestId, caller, signal, trace } = call;
    const ms = deps.clock() - started;
    callEnded(method, ms, failure, call);
    const line = { rpc: methodName(method), requestId, ...traceIds(trace), caller, ms: Math.round(ms) };
    if (failure) logFailure(line, failure, thrown, signal?.aborted);
    else deps.log.debug(line, "served");
  }

  return { begin, refused, validated, isLate, late, failed, end, logFailure };
}

/** A temporary failure is logged without its stack, and with what caused it. */
const oneLine = (thrown: unknown): string =>
  !(thrown instanceof Error)
    ? `${thrown}`
    : thrown.cause === undefined
      ? thrown.message
      : `${thrown.message}: ${oneLine(thrown.cause)}`;
