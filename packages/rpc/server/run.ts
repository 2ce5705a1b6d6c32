/** One call on its way through the dispatcher: what it is done under, what its caller is told, and its line in the log. */
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import type { Runtime } from "@petstore/runtime/clock";
import { validate } from "connect-transcoder/validation/validate";
import type { Admission } from "../admission/admission.ts";
import { type CallContext, openCall, type Principal } from "../call.ts";
import type { ErrorCatalogue, RpcError } from "../errors/catalogue.ts";
import { type ErrorTranslation, NOT_BEGUN, outOfTime, violationError } from "../errors/translate.ts";
import type { StreamHandler, UnaryHandler } from "./handlers.ts";
import { isUnary, type RequestOrigin, type Served } from "./routes.ts";

/** What came with a call besides its message. */
export interface Incoming {
  readonly headers: Headers;
  /** Milliseconds until the caller gives up; undefined when it set no limit. */
  readonly timeoutMs: number | undefined;
  /** It came from a process of the system, which has shown it already. By default the headers have to. */
  readonly isPeer?: boolean | undefined;
  /** Who calls, if `admit` has said so. By default it is asked. */
  readonly principal?: Principal | undefined;
}

export interface IncomingStream extends Incoming {
  /** What is known of where it came from. */
  readonly origin?: RequestOrigin | undefined;
  /** Calls `end` when the caller has gone, at once if it has. */
  readonly whenGone: (end: () => void) => void;
  /** Where headers of the answer go. */
  readonly responseHeaders: Headers;
}

/** A method that is served. */
export interface Entry {
  readonly method: Served;
  readonly handler: UnaryHandler | StreamHandler;
  /** No more than so many run at a time. */
  readonly limited: boolean;
  /** It may be refused for others. */
  readonly isSheddable: boolean;
  readonly isDiagnostic: boolean;
}

/** So much before the deadline a timer that was set to it may fire. */
const EARLY_MS = 2;

export const methodName = (method: DescMethod): string => `${method.parent.typeName}/${method.name}`;

export interface RunOptions {
  readonly deps: Pick<Runtime, "clock" | "random" | "log">;
  readonly errors: ErrorCatalogue;
  readonly translation: ErrorTranslation;
  readonly admission: Admission;
  /** Most unary calls that are worked on at once. */
  readonly maxCalls: number;
}

export interface Run {
  readonly call: CallContext;
  /** On the process's clock. */
  readonly started: number;
  readonly method: Served;
}

export type Runs = ReturnType<typeof createRuns>;

export function createRuns({ deps, errors, translation, admission, maxCalls }: RunOptions) {
  const { rpcError } = errors;
  const { isBug, toRpcError } = translation;

  function logFailure(line: object, failure: RpcError, thrown: unknown): void {
    if (isBug(thrown)) deps.log.error({ ...line, err: failure.cause }, failure.rawMessage);
    else if (failure.code === Code.Unavailable)
      deps.log.warn({ ...line, cause: oneLine(failure.cause) }, failure.rawMessage);
    else deps.log.debug({ ...line, code: Code[failure.code] }, failure.rawMessage);
  }

  /** Throws OVERLOADED or DEADLINE_EXCEEDED for what is not begun. */
  function begin({ method, limited }: Entry, incoming: Incoming, principal: Principal, maxTimeoutMs: number): Run {
    if (limited && isUnary(method) && admission.underWay() >= maxCalls)
      throw rpcError("OVERLOADED", "The service has too much to do. Try again in a second.");
    const started = deps.clock();
    const call = openCall(incoming, { ...deps, maxTimeoutMs, principal });
    if (admission.isHopeless(method, call.deadline - started)) throw rpcError("DEADLINE_EXCEEDED", NOT_BEGUN);
    return { call, started, method };
  }

  /** Throws VALIDATION_FAILED. */
  function validated({ method }: Run, request: Message): void {
    const violations = validate(method.input, request);
    if (violations.length > 0) throw violationError(errors, violations);
  }

  const writes = ({ method }: Run) => method.idempotency !== Level.NO_SIDE_EFFECTS;
  /** Whether the caller's time is over, as far as a timer can tell. */
  const isLate = ({ call }: Run) => deps.clock() >= call.deadline - EARLY_MS;
  const late = (run: Run) => rpcError("DEADLINE_EXCEEDED", outOfTime(writes(run)));

  /** What the caller is told. */
  const failed = (run: Run, thrown: unknown): RpcError =>
    toRpcError(thrown, { requestId: run.call.requestId, isLate: isLate(run), writes: writes(run) });

  function log({ method, call, started }: Run, failure: RpcError | undefined, thrown: unknown): void {
    const { requestId, caller } = call;
    const line = { rpc: methodName(method), requestId, caller, ms: Math.round(deps.clock() - started) };
    if (failure) logFailure(line, failure, thrown);
    else deps.log.debug(line, "served");
  }

  return { begin, validated, isLate, late, failed, log, logFailure };
}

/** What passes by itself needs no stack. */
const oneLine = (cause: unknown): string => (cause instanceof Error ? cause.message : `${cause}`);
