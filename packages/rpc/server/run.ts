/**
 * One call in the dispatcher: its context, its validation, the error that its caller gets, and its line in the log. A unary
 * call from its begin to its end; that of streams is in `stream-calls.ts`.
 */
import {
  create,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type Message,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { type TraceContext, traceIds } from "@petstore/trace/context";
import { prepareValidation, validate } from "connect-transcoder/validation";
import type { Admission, Closing } from "../admission/admission.ts";
import { type Call, type CallContext, openCall, type Principal, requestIdIn, rpcName, SEEN_HEADER } from "../call.ts";
import { createErrorTranslation, NOT_BEGUN, outOfTime, type RpcError, violationError } from "../errors.ts";
import type { DispatcherOptions } from "./dispatcher.ts";
import type { Served, StreamHandler, UnaryHandler } from "./handlers.ts";

/** The network that a request came from, see `callerAddress`, and its response. */
export interface RequestOrigin {
  readonly network: string;
  readonly response: Closing;
  /** Counts the response as a stream, which no longer takes from what short requests share. */
  countAsStream(): void;
}

/** What is known of a caller before the message is read. */
export interface Caller {
  /** Whether it has proved to be one of the system's own processes. By default the secret in the headers decides. */
  readonly isPeer?: true | undefined;
  readonly origin?: RequestOrigin | undefined;
  /** Whether it comes from a proxy that the operator trusts. */
  readonly isProxy?: boolean | undefined;
  /** Who calls, if `admit` was called already. By default the dispatcher calls it. */
  principal?: Principal | undefined;
}

/** What arrives with a call besides its message. */
export interface Incoming extends Readonly<Caller> {
  readonly headers: Headers;
  /** Milliseconds until the caller gives up; undefined when it set no limit. */
  readonly timeoutMs: number | undefined;
  /** Aborts when the caller of a unary call has gone. */
  readonly signal?: AbortSignal | undefined;
  /** Where the call is in a trace that is recorded. */
  readonly trace?: TraceContext | undefined;
}

export interface IncomingStream extends Incoming {
  /** Calls `end` when the caller has gone, at once if it already has. */
  readonly whenGone: (end: () => void) => void;
  /** Receives the headers of the response. */
  readonly responseHeaders: Headers;
}

export interface Answer {
  readonly message: Message;
  readonly headers: Headers;
}

/** What a dispatcher does with calls. Errors are those of the catalogue, and UNIMPLEMENTED for a method that is not served. */
export interface Calls {
  invoke(method: DescMethodUnary, request: Message, incoming: Incoming): Promise<Answer>;
  stream(method: DescMethodServerStreaming, request: Message, incoming: IncomingStream): AsyncIterable<Message>;
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

export interface Run {
  readonly call: CallContext;
  /** When the call began, on the process's clock (milliseconds). */
  readonly started: number;
  readonly method: Served;
}

export type Runs = ReturnType<typeof createRuns>;

export function createRuns(
  methods: Iterable<Entry>,
  admission: Admission,
  { deps, errors, storeFailureOf, maxTimeoutMs = 10_000, maxCalls = 10_000, callEnded = () => {} }: DispatcherOptions,
) {
  const { rpcError } = errors;
  const { isBug, toRpcError } = createErrorTranslation(errors, storeFailureOf);
  /** Undefined once requests can be validated. */
  let preparing = prepareValidation(Array.from(methods, ({ method }) => method.input))?.then(() => {
    preparing = undefined;
  });

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

  /** The same for a caller that is not admitted. */
  function notAdmitted(method: DescMethod, headers: Headers, thrown: unknown): RpcError {
    const requestId = requestIdIn(headers, deps.random);
    const failure = toRpcError(thrown, { requestId });
    logFailure({ rpc: rpcName(method), requestId }, failure, thrown);
    return refused(method, failure);
  }

  /** Throws DEADLINE_EXCEEDED for a call that is not begun. */
  function begin({ method }: Entry, incoming: Incoming, admitted: Admitted, maxTimeoutMs: number): Run {
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
    const line = { rpc: rpcName(method), requestId, ...traceIds(trace), caller, ms: Math.round(ms) };
    if (failure) logFailure(line, failure, thrown, signal?.aborted);
    else deps.log.debug(line, "served");
  }

  /** Runs a handler, and counts the call until it is done: that may be after its caller got DEADLINE_EXCEEDED. */
  async function runCounted({ method, handler }: Entry, request: Message, run: Run, call: Call): Promise<Message> {
    const admitted = admission.begin(method);
    let isAnswered = false;
    try {
      if (preparing) await preparing;
      validated(run, request);
      const answer = create(method.output, await (handler as UnaryHandler)(request, call));
      isAnswered = true;
      return answer;
    } finally {
      admission.end(admitted, isAnswered ? "all" : "nothing");
    }
  }

  async function unary(entry: Entry, request: Message, incoming: Incoming, admitted: Admitted): Promise<Answer> {
    if (entry.limited && admission.underWay() >= maxCalls)
      throw refused(entry.method, rpcError("OVERLOADED", "The service has too much to do. Try again in a second."));
    const run = begin(entry, incoming, admitted, maxTimeoutMs);
    const call = { ...run.call, headers: incoming.headers, responseHeaders: new Headers() };
    /** Tells the caller, in the headers of its answer, what was seen that it has not seen. */
    const tellSeen = (headers: Headers): void => {
      const { seen } = run.call.progress;
      if (seen !== undefined && seen !== admitted.seen) headers.set(SEEN_HEADER, seen);
    };
    let failure: RpcError | undefined;
    let thrown: unknown;
    try {
      const work = runCounted(entry, request, run, call);
      const message = await inTime(work, run.call.deadline - run.started, () => late(run));
      tellSeen(call.responseHeaders);
      return { message, headers: call.responseHeaders };
    } catch (error) {
      thrown = error;
      failure = failed(run, error);
      for (const [name, value] of call.responseHeaders) failure.metadata.set(name, value);
      tellSeen(failure.metadata);
      throw failure;
    } finally {
      end(run, failure, thrown);
    }
  }

  return { prepared: () => preparing, refused, notAdmitted, begin, validated, isLate, late, failed, end, unary };
}

/** At the deadline only the waiting ends. The handler goes on, for finishing its work beats leaving it to a recovery worker. */
async function inTime<T>(work: Promise<T>, ms: number, outOfTime: () => RpcError): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(outOfTime()), Math.max(0, ms));
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A temporary failure is logged without its stack, and with what caused it. */
const oneLine = (thrown: unknown): string =>
  thrown instanceof Error
    ? thrown.message + (thrown.cause === undefined ? "" : `: ${oneLine(thrown.cause)}`)
    : `${thrown}`;
