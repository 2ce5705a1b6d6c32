/**
 * Every RPC of a service passes through the dispatcher, unary or server-streaming, whether it came by itself, over a link, or
 * from a simulation. Each goes through the same admission, authorization, validation, logging and mapping of errors.
 */
import {
  create,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  type Message,
} from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { Clock, Runtime } from "@petstore/runtime/clock";
import type { Tracing } from "@petstore/trace/tracing";
import { prepareValidation } from "connect-transcoder/validation";
import { createAdmission, createShedLog, NO_ROOM } from "../admission/admission.ts";
import { isInternal } from "../auth/access.ts";
import type { Authentication } from "../auth/authentication.ts";
import { type Call, type CallEnded, type Principal, requestIdIn, SEEN_HEADER } from "../call.ts";
import { createErrorTranslation, type ErrorCatalogue, type RpcError, type StoreFailureOf } from "../errors.ts";
import { createAuthorization } from "./authorization.ts";
import { noSuchRpc } from "./error-answer.ts";
import type { Implementation, UnaryHandler } from "./handlers.ts";
import { defaultStreamLimits, type StreamLimits } from "./open-streams.ts";
import { addRoutes, isServed, isUnary, type RequestOrigin, type Served } from "./routes.ts";
import { createRuns, type Entry, type Incoming, type IncomingStream, methodName, type Run } from "./run.ts";
import { createStreamCalls } from "./stream-calls.ts";
import { traced } from "./traced.ts";

export interface Answer {
  readonly message: Message;
  readonly headers: Headers;
}

export interface Dispatcher {
  readonly services: readonly DescService[];
  readonly errors: ErrorCatalogue;
  /** The unary method with the name "package.Service/Method", if there is one. */
  find(name: string): DescMethodUnary | undefined;
  /** Whether the headers contain the secret of the internal services. */
  isTrusted(headers: Headers): boolean;
  readonly clock: Clock;
  /** Whether callers from outside need credentials. */
  readonly asksCallers: boolean;
  /** Whether it matters that a trusted proxy has sent a call. */
  readonly heedsProxies: boolean;
  /**
   * Throws OVERLOADED if there is no room for a call, before its message is read. Calls of the system's own processes are
   * never refused, for they belong to calls that were admitted elsewhere.
   */
  shed(method: DescMethod, headers: Headers, isPeer?: boolean, origin?: RequestOrigin): void;
  /** Returns who calls, if they may call the method. Throws or rejects with an RpcError, after logging it. */
  admit(method: DescMethod, headers: Headers, isPeer?: boolean): Principal | Promise<Principal>;
  /** Runs one unary call. Rejects with an RpcError, or with UNIMPLEMENTED for a method that is not served here. */
  invoke(method: DescMethodUnary, request: Message, incoming: Incoming): Promise<Answer>;
  /** Runs one server-streaming call. The stream ends with an RpcError or without any error. */
  stream(method: DescMethodServerStreaming, request: Message, incoming: IncomingStream): AsyncIterable<Message>;
  /**
   * To be called when the process stops: asks the streams to end (`StreamingCall.draining`), and after `drainMs` ends the
   * others with UNAVAILABLE.
   */
  drain(): void;
  /** What there is at the moment. */
  readonly load: {
    /** Unary calls that may be under way, and those that are. */
    limit(): number;
    underWay(): number;
    streams(): number;
  };
  /** Adds every service to a Connect router. */
  routes(router: ConnectRouter): void;
}

export interface DispatcherOptions {
  readonly deps: Pick<Runtime, "clock" | "random" | "log"> & {
    /** Records a span for each call. */
    readonly tracing?: Tracing | undefined;
  };
  readonly errors: ErrorCatalogue;
  /** By default no error of a handler counts as a store failure. */
  readonly storeFailureOf?: StoreFailureOf;
  /** The secret that callers of internal services must send, unless they have presented a certificate. */
  readonly secret?: string | undefined;
  /** Authenticates callers from outside. By default they need no credentials, and may call everything but internal services. */
  readonly authentication?: Authentication | undefined;
  /** Longest time limit of a unary call, in milliseconds. A stream lasts as long as its caller and its handler want. */
  readonly maxTimeoutMs?: number;
  /** While this many unary calls run, those of public services are refused with OVERLOADED; diagnostic ones are not. */
  readonly maxCalls?: number;
  /** Most streams of public services; more are refused with TOO_MANY_STREAMS. Diagnostic streams are counted separately. */
  readonly streamLimits?: StreamLimits;
  /** How long streams may go on once the process stops, in milliseconds. */
  readonly drainMs?: number;
  readonly callEnded?: CallEnded | undefined;
}

/** Enough for a last message over a slow network, and less than a server that closes gives running requests. */
const DRAIN_MS = 5_000;

/** Puts services behind one endpoint. Throws if a method has no handler or takes a stream of requests. */
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
    callEnded = () => {},
  } = options;
  const { rpcError } = errors;
  const translation = createErrorTranslation(errors, options.storeFailureOf);
  const authorization = createAuthorization(secret, errors, authentication);
  const methods = new Map<string, Entry>();
  for (const { desc, handlers, isDiagnostic } of implementations)
    for (const method of desc.methods) {
      const handler = handlers[method.localName];
      if (!isServed(method) || !handler) throw new Error(`${method.toString()} has no handler`);
      // Internal calls belong to work that was admitted elsewhere: refusing them would only leave it unfinished.
      const limited = !isInternal(method) && !(isDiagnostic && isUnary(method));
      const isSheddable = !isInternal(method) && !isDiagnostic;
      methods.set(methodName(method), { method, handler, limited, isSheddable, isDiagnostic });
    }

  function entryOf(method: DescMethod): Entry {
    const entry = methods.get(methodName(method));
    if (!entry) throw noSuchRpc(errors);
    return entry;
  }

  /** Undefined once requests can be validated. */
  let preparing = prepareValidation([...methods.values()].map(({ method }) => method.input))?.then(() => {
    preparing = undefined;
  });

  const admission = createAdmission(deps);
  const logShed = createShedLog(deps);
  const runs = createRuns({ deps, errors, translation, admission, maxCalls, callEnded });
  const ready = () => preparing;
  const streamCalls = createStreamCalls({ runs, errors, authorization, limits: streamLimits, drainMs, ready });

  function shed(method: DescMethod, headers: Headers, isPeer = false, origin?: RequestOrigin): void {
    if (!methods.get(methodName(method))?.isSheddable || isPeer || authorization.isTrusted(headers)) return;
    if (admission.letIn(method, origin?.network, origin?.response)) return;
    logShed(method);
    throw runs.refused(method, rpcError("OVERLOADED", NO_ROOM));
  }

  function admit(method: DescMethod, headers: Headers, isPeer?: boolean): Principal | Promise<Principal> {
    const refuse = (thrown: unknown): never => {
      const requestId = requestIdIn(headers, deps.random);
      const failure = translation.toRpcError(thrown, { requestId });
      runs.logFailure({ rpc: methodName(method), requestId }, failure, thrown);
      throw runs.refused(method, failure);
    };
    try {
      const principal = authorization.admit(method, headers, isPeer);
      return principal instanceof Promise ? principal.catch(refuse) : principal;
    } catch (thrown) {
      return refuse(thrown);
    }
  }

  const seenBy = ({ headers, isPeer }: Incoming): string | undefined => {
    const seen = headers.get(SEEN_HEADER);
    return seen !== null && (isPeer ?? authorization.isTrusted(headers)) ? seen : undefined;
  };
  /** Tells the caller, in the headers of its answer, what was seen that it has not seen. */
  const tellSeen = ({ call: { progress } }: Run, before: string | undefined, headers: Headers): void => {
    if (progress.seen !== undefined && progress.seen !== before) headers.set(SEEN_HEADER, progress.seen);
  };

  /** Returns no promise if callers need no credentials. */
  const principalOf = (method: Served, { principal, headers, isPeer }: Incoming): Principal | Promise<Principal> =>
    principal ?? admit(method, headers, isPeer);

  /** Runs a handler, and counts the call until it is done: that may be after its caller got DEADLINE_EXCEEDED. */
  async function runCounted({ method, handler }: Entry, request: Message, run: Run, call: Call) {
    const admitted = admission.begin(method);
    let isAnswered = false;
    try {
      if (preparing) await preparing;
      runs.validated(run, request);
      const answer = create(method.output, await (handler as UnaryHandler)(request, call));
      isAnswered = true;
      return answer;
    } finally {
      admission.end(admitted, isAnswered ? "all" : "nothing");
    }
  }

  async function invoke(method: DescMethodUnary, request: Message, incoming: Incoming): Promise<Answer> {
    const found = principalOf(method, incoming);
    const principal = found instanceof Promise ? await found : found;
    const entry = entryOf(method);
    const seen = seenBy(incoming);
    const run = runs.begin(entry, incoming, { principal, seen }, maxTimeoutMs);
    const call = { ...run.call, headers: incoming.headers, responseHeaders: new Headers() };
    let failure: RpcError | undefined;
    let thrown: unknown;
    try {
      const message = await inTime(runCounted(entry, request, run, call), run.call.deadline - run.started, () =>
        runs.late(run),
      );
      tellSeen(run, seen, call.responseHeaders);
      return { message, headers: call.responseHeaders };
    } catch (error) {
      thrown = error;
      failure = runs.failed(run, error);
      for (const [name, value] of call.responseHeaders) failure.metadata.set(name, value);
      tellSeen(run, seen, failure.metadata);
      throw failure;
    } finally {
      runs.end(run, failure, thrown);
    }
  }

  const stream = (method: DescMethodServerStreaming, request: Message, incoming: IncomingStream) =>
    streamCalls.stream(entryOf(method), request, incoming, async () => ({
      principal: await principalOf(method, incoming),
      seen: seenBy(incoming),
    }));

  const calls = traced({ invoke, stream }, deps.tracing, {
    isTraced: (method) => !methods.get(methodName(method))?.isDiagnostic,
    isOwn: ({ isPeer, headers }) => isPeer ?? authorization.isTrusted(headers),
  });

  return {
    services: implementations.map(({ desc }) => desc),
    errors,
    find(name) {
      const method = methods.get(name)?.method;
      return method && isUnary(method) ? method : undefined;
    },
    isTrusted: authorization.isTrusted,
    asksCallers: authentication !== undefined,
    heedsProxies: deps.tracing !== undefined,
    clock: deps.clock,
    shed,
    admit,
    ...calls,
    drain: streamCalls.drain,
    load: { limit: admission.limit, underWay: admission.underWay, streams: streamCalls.count },
    routes: (router) => addRoutes(router, [...methods.values()], calls),
  };
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
