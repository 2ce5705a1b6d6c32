/**
 * Every RPC of a service passes through here, unary or server-streaming, whichever way it came: by itself, over a link, or
 * from a simulation. Each goes through the same admission, authorization, validation, log and mapping of errors.
 */
import type { DescMethod, DescMethodServerStreaming, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { Code, type ConnectRouter } from "@connectrpc/connect";
import type { Clock, Runtime } from "@petstore/runtime/clock";
import { prepareValidation, validate } from "connect-transcoder/validation/validate";
import { createAdmission } from "../admission/admission.ts";
import { createShedLog } from "../admission/shed-log.ts";
import { OVERLOADED } from "../admission/transport.ts";
import { isInternal } from "../auth/access.ts";
import type { Authentication } from "../auth/authentication.ts";
import { callerName, openCall, type Principal, requestIdOf } from "../call.ts";
import { type ErrorCatalogue, RpcError } from "../errors/catalogue.ts";
import {
  createErrorTranslation,
  NOT_BEGUN,
  outOfTime,
  type StoreFailureOf,
  violationError,
} from "../errors/translate.ts";
import { messageOf } from "../message.ts";
import { createAuthorization } from "./authorization.ts";
import type { Implementation, StreamHandler, UnaryHandler } from "./handlers.ts";
import { createOpenStreams, defaultStreamLimits, type StreamLimits } from "./open-streams.ts";
import { type Asked, addRoutes, isServed, isUnary, type Served } from "./routes.ts";
import { until } from "./until.ts";

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
  readonly asked?: Asked | undefined;
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal;
  /** Where headers of the answer go. */
  readonly responseHeaders: Headers;
}

export interface Answer {
  readonly message: Message;
  readonly headers: Headers;
}

export interface Dispatcher {
  readonly services: readonly DescService[];
  readonly errors: ErrorCatalogue;
  /** "package.Service/Method" to the method, if it is unary. */
  find(name: string): DescMethodUnary | undefined;
  /** True for a caller that knows the secret of the internal services. */
  isTrusted(headers: Headers): boolean;
  readonly clock: Clock;
  /** Whether callers from outside are asked for credentials. */
  readonly asksCallers: boolean;
  /**
   * Refuses a call that there is no room for, before anything is read of it: throws OVERLOADED. Calls of the system's own
   * processes were let in elsewhere.
   */
  shed(method: DescMethod, headers: Headers, isPeer?: boolean, asked?: Asked): void;
  /** Who calls, if they may call the method. Throws or rejects with an RpcError, which it has logged. */
  admit(method: DescMethod, headers: Headers, isPeer?: boolean): Principal | Promise<Principal>;
  /** Runs one unary call. Rejects with an RpcError and nothing else. */
  invoke(method: DescMethodUnary, request: Message, incoming: Incoming): Promise<Answer>;
  /** Runs one call that is answered by a stream, which ends with an RpcError or without any. */
  stream(method: DescMethodServerStreaming, request: Message, incoming: IncomingStream): AsyncIterable<Message>;
  /**
   * The process stops: streams are told to end in good order, see `StreamingCall`, and those that go on are ended with
   * UNAVAILABLE.
   */
  drain(): void;
  /** Adds every service to a Connect router. */
  routes(router: ConnectRouter): void;
}

export interface DispatcherOptions {
  readonly deps: Pick<Runtime, "clock" | "random" | "log">;
  readonly errors: ErrorCatalogue;
  /** By default no failure of a handler is one of a store. */
  readonly storeFailureOf?: StoreFailureOf;
  /** What callers of internal services must know, unless they have shown a certificate. */
  readonly secret?: string | undefined;
  /** Asks callers from outside who they are. By default nobody is asked, and everybody may call what is not internal. */
  readonly authentication?: Authentication | undefined;
  /** Longest that a unary call may take, in milliseconds. A stream takes as long as its caller and its handler want. */
  readonly maxTimeoutMs?: number;
  /** Most unary calls of public services that are worked on at once; more are refused with OVERLOADED. */
  readonly maxCalls?: number;
  /** The same for streams; more are refused with TOO_MANY_STREAMS. Those of diagnostic services are counted by themselves. */
  readonly streamLimits?: StreamLimits;
  /** How long streams may go on once the process stops, in milliseconds. */
  readonly drainMs?: number;
}

interface Entry {
  readonly method: Served;
  readonly handler: UnaryHandler | StreamHandler;
  /** No more than so many run at a time. */
  readonly limited: boolean;
  /** It may be refused for others. */
  readonly canWait: boolean;
  readonly isDiagnostic: boolean;
}

/** Enough for a last message on a slow way, and less than a server gives what runs when it closes. */
const DRAIN_MS = 5_000;
/** So much before the deadline a timer that was set to it may fire. */
const EARLY_MS = 2;
/** The longest time that a timer of Node can be set to: about 25 days. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const STOPS = "The process stops. Call again: another one goes on.";

interface OpenStream {
  readonly draining: AbortController;
  readonly ended: AbortController;
}

const methodName = (method: DescMethod): string => `${method.parent.typeName}/${method.name}`;

/** Puts services behind one endpoint. Throws when a method lacks its handler, or takes a stream. */
export function createDispatcher(implementations: readonly Implementation[], options: DispatcherOptions): Dispatcher {
  const {
    deps,
    secret,
    errors,
    authentication,
    maxTimeoutMs = 10_000,
    maxCalls = 10_000,
    streamLimits = defaultStreamLimits,
    drainMs = DRAIN_MS,
  } = options;
  const { rpcError } = errors;
  const { isBug, toRpcError } = createErrorTranslation(errors, options.storeFailureOf);
  const authorization = createAuthorization(secret, errors, authentication);
  const methods = new Map<string, Entry>();
  for (const { desc, handlers, isDiagnostic } of implementations)
    for (const method of desc.methods) {
      const handler = handlers[method.localName];
      if (!isServed(method) || !handler) throw new Error(`${method.toString()} has no handler`);
      // Internal calls belong to work that was admitted elsewhere: to refuse them would only leave it unfinished.
      const limited = !isInternal(method) && !(isDiagnostic && isUnary(method));
      const canWait = !isInternal(method) && !isDiagnostic;
      methods.set(methodName(method), { method, handler, limited, canWait, isDiagnostic });
    }
  /** Undefined when there is nothing to wait for any more. */
  let preparing = prepareValidation([...methods.values()].map(({ method }) => method.input))?.then(() => {
    preparing = undefined;
  });

  const admission = createAdmission(deps);
  const logShed = createShedLog(deps);
  const streams = new Set<OpenStream>();
  const [places, diagnosticPlaces] = [createOpenStreams(streamLimits), createOpenStreams(streamLimits)];
  let isDraining = false;

  function shed(method: DescMethod, headers: Headers, isPeer = false, asked?: Asked): void {
    if (!methods.get(methodName(method))?.canWait || isPeer || authorization.isTrusted(headers)) return;
    if (admission.hasRoom(method, asked?.network)) {
      // A stream lasts: it would take its caller's part of what is for short calls.
      if (asked && method.methodKind === "unary") asked.answer.once("close", admission.hold(asked.network));
      return;
    }
    logShed(method);
    throw rpcError("OVERLOADED", OVERLOADED);
  }

  function logFailure(entry: object, failure: RpcError, thrown: unknown): void {
    if (isBug(thrown)) deps.log.error({ ...entry, err: failure.cause }, failure.rawMessage);
    else if (failure.code === Code.Unavailable)
      deps.log.warn({ ...entry, cause: oneLine(failure.cause) }, failure.rawMessage);
    else deps.log.debug({ ...entry, code: Code[failure.code] }, failure.rawMessage);
  }

  function admit(method: DescMethod, headers: Headers, isPeer?: boolean): Principal | Promise<Principal> {
    const refuse = (thrown: unknown): never => {
      const requestId = requestIdOf(headers, deps.random);
      const failure = toRpcError(thrown, { requestId });
      logFailure({ rpc: methodName(method), requestId }, failure, thrown);
      throw failure;
    };
    try {
      const principal = authorization.admit(method, headers, isPeer);
      return principal instanceof Promise ? principal.catch(refuse) : principal;
    } catch (thrown) {
      return refuse(thrown);
    }
  }

  /** Waits for nothing where nobody is asked. */
  const principalOf = (method: Served, { principal, headers, isPeer }: Incoming): Principal | Promise<Principal> =>
    principal ?? admit(method, headers, isPeer);

  /** What unary and streaming calls have in common, from their admission to the line in the log. */
  function begin(method: Served, incoming: Incoming, principal: Principal, maxMs: number) {
    const { handler, limited } = methods.get(methodName(method)) ?? {};
    if (!handler) throw new Error(`${methodName(method)} is not served here`);
    if (limited && isUnary(method) && admission.underWay() >= maxCalls)
      throw rpcError("OVERLOADED", "The service has too much to do. Try again in a second.");
    const started = deps.clock();
    const call = openCall(incoming, { ...deps, maxTimeoutMs: maxMs, principal });
    if (admission.isHopeless(method, call.deadline - started)) throw rpcError("DEADLINE_EXCEEDED", NOT_BEGUN);
    const writes = method.idempotency !== Level.NO_SIDE_EFFECTS;
    return {
      call,
      handler,
      started,
      outOfTime: () => rpcError("DEADLINE_EXCEEDED", outOfTime(writes)),
      isLate: () => deps.clock() >= call.deadline - EARLY_MS,
      validate(request: Message): void {
        const violations = validate(method.input, request);
        if (violations.length > 0) throw violationError(errors, violations);
      },
      /** What the caller is told. */
      failed(thrown: unknown): RpcError {
        return toRpcError(thrown, { requestId: call.requestId, isLate: this.isLate(), writes });
      },
      log(failure: RpcError | undefined, thrown: unknown): void {
        const { requestId, caller } = call;
        const entry = { rpc: methodName(method), requestId, caller, ms: Math.round(deps.clock() - started) };
        if (failure) logFailure(entry, failure, thrown);
        else deps.log.debug(entry, "served");
      },
    };
  }
  type Begun = ReturnType<typeof begin>;

  /** Counts until the handler is done, which may be after its caller was answered. */
  async function runCounted(method: DescMethodUnary, request: Message, { call, handler, validate }: Begun) {
    const admitted = admission.begin(method);
    let isAnswered = false;
    try {
      if (preparing) await preparing;
      validate(request);
      const answer = messageOf(method.output, await (handler as UnaryHandler)(request, call));
      isAnswered = true;
      return answer;
    } finally {
      admission.end(admitted, isAnswered);
    }
  }

  async function invoke(method: DescMethodUnary, request: Message, incoming: Incoming): Promise<Answer> {
    const found = principalOf(method, incoming);
    const principal = found instanceof Promise ? await found : found;
    const run = begin(method, incoming, principal, maxTimeoutMs);
    let failure: RpcError | undefined;
    let thrown: unknown;
    try {
      const message = await inTime(runCounted(method, request, run), run.call.deadline - run.started, run.outOfTime);
      return { message, headers: run.call.responseHeaders };
    } catch (error) {
      thrown = error;
      failure = run.failed(error);
      throw failure;
    } finally {
      run.log(failure, thrown);
    }
  }

  /** `end` is called when the caller may not have it any more. Gives what frees the place again. */
  function takePlace(
    method: Served,
    { headers, isPeer = authorization.isTrusted(headers), asked }: IncomingStream,
    principal: Principal,
    end: (refusal: RpcError) => void,
  ): () => void {
    const { limited, isDiagnostic } = methods.get(methodName(method)) ?? {};
    if (!limited) return () => {};
    // Load balancers watch for all of their own callers.
    const isCounted = !isDiagnostic && !isPeer;
    const caller = isCounted ? callerName(principal, () => `${asked?.network}`) : undefined;
    const free = (isDiagnostic ? diagnosticPlaces : places).enter(caller);
    if (typeof free === "string") throw rpcError("TOO_MANY_STREAMS", free);
    asked?.lasts();
    const leave = authorization.follow(method, headers, isPeer, end);
    return () => {
      free();
      leave();
    };
  }

  async function* stream(method: DescMethodServerStreaming, request: Message, incoming: IncomingStream) {
    const principal = await principalOf(method, incoming);
    const run = begin(method, incoming, principal, Number.POSITIVE_INFINITY);
    const ended = new AbortController();
    const leave = takePlace(method, incoming, principal, (refusal) => ended.abort(refusal));
    const draining = new AbortController();
    const open: OpenStream = { draining, ended };
    if (isDraining) draining.abort();
    // Not `AbortSignal.any`, which looks at its sources each time that it is asked.
    const { signal } = ended;
    const callerHasGone = () => ended.abort(incoming.signal.reason);
    incoming.signal.addEventListener("abort", callerHasGone, { once: true });
    if (incoming.signal.aborted) callerHasGone();
    // Also while its handler goes on, or nobody asks for its next message.
    signal.addEventListener("abort", leave, { once: true });
    const left = run.call.deadline - run.started;
    const timer = left <= MAX_TIMER_MS ? setTimeout(() => ended.abort(), Math.max(0, left)) : undefined;
    const stopped = () => {
      if (ended.signal.reason instanceof RpcError) return ended.signal.reason;
      return run.isLate() ? run.outOfTime() : new RpcError("the caller has gone", Code.Canceled);
    };
    let failure: RpcError | undefined;
    let thrown: unknown;
    /** False while a message waits. What comes then is no failure of the handler: it could not be sent, or nobody wants it. */
    let isTaken = true;
    streams.add(open);
    try {
      if (preparing) await preparing;
      run.validate(request);
      const call = { ...run.call, responseHeaders: incoming.responseHeaders, signal, draining: draining.signal };
      const messages = (run.handler as StreamHandler)(request, call);
      for await (const message of until(signal, messages, stopped)) {
        const answer = messageOf(method.output, message);
        isTaken = false;
        yield answer;
        isTaken = true;
      }
    } catch (error) {
      thrown = isTaken ? error : stopped();
      failure = run.failed(thrown);
      throw failure;
    } finally {
      if (!isTaken && !failure) thrown = failure = stopped();
      streams.delete(open);
      clearTimeout(timer);
      incoming.signal.removeEventListener("abort", callerHasGone);
      ended.abort();
      leave(); // a signal that was aborted before calls nobody
      run.log(failure, thrown);
    }
  }

  return {
    services: implementations.map(({ desc }) => desc),
    errors,
    find(name) {
      const method = methods.get(name)?.method;
      return method && isUnary(method) ? method : undefined;
    },
    isTrusted: authorization.isTrusted,
    asksCallers: authentication !== undefined,
    clock: deps.clock,
    shed,
    admit,
    invoke,
    stream,
    drain() {
      if (isDraining) return;
      isDraining = true;
      for (const { draining } of streams) draining.abort();
      const end = () => {
        for (const { ended } of streams) ended.abort(rpcError("UNAVAILABLE", STOPS));
      };
      setTimeout(end, drainMs).unref();
    },
    routes: (router) => addRoutes(router, [...methods.values()], { invoke, stream }),
  };
}

/** What passes by itself needs no stack. */
const oneLine = (cause: unknown): string => (cause instanceof Error ? cause.message : `${cause}`);

/** The handler goes on when its caller's time is up: what it has begun is better finished than left to a recovery worker. */
async function inTime<T>(work: Promise<T>, ms: number, outOfTime: () => RpcError): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(outOfTime()), Math.max(0, ms));
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
