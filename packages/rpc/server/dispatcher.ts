/**
 * Every RPC of a service passes through the dispatcher, unary or server-streaming, whether it came by itself, over a link, or
 * from a simulation. Each goes through the same admission, authorization, validation, logging and mapping of errors.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { DescMethod, DescMethodServerStreaming, DescMethodUnary, Message } from "@bufbuild/protobuf";
import { type ConnectRouter, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Runtime } from "@petstore/runtime/clock";
import type { Tracing } from "@petstore/trace/tracing";
import { createAdmission, createShedLog, NO_ROOM } from "../admission/admission.ts";
import { type Authentication, isInternal } from "../auth/authentication.ts";
import { credentialsIn } from "../auth/credentials.ts";
import {
  ANONYMOUS,
  CALLER_HEADER,
  type CallEnded,
  type Principal,
  rpcName,
  SECRET_HEADER,
  SEEN_HEADER,
} from "../call.ts";
import type { ErrorCatalogue, StoreFailureOf } from "../errors.ts";
import { isProven } from "../http/connections.ts";
import type { StreamLimits } from "../http/limits.ts";
import { traced } from "../traced.ts";
import { type Implementation, isServed, isUnary } from "./handlers.ts";
import { noSuchRpc } from "./refused-calls.ts";
import { type Caller, type Calls, createRuns, type Entry, type Incoming } from "./run.ts";
import { createStreamCalls } from "./stream-calls.ts";
import { onAbort } from "./until.ts";

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

export type Dispatcher = ReturnType<typeof createDispatcher>;

// timingSafeEqual needs equal lengths.
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/**
 * Puts services behind one endpoint. Throws if a method has no handler or takes a stream of requests.
 *
 * The system's own processes know a secret that outside callers never get, or have presented a certificate. Only they may call
 * internal services, and only they may name the caller on whose behalf they call.
 */
export function createDispatcher(implementations: readonly Implementation[], options: DispatcherOptions) {
  const { deps, secret, errors, authentication } = options;
  const { rpcError, system } = errors;
  const methods = new Map<string, Entry>();
  for (const { desc, handlers, isDiagnostic } of implementations)
    for (const method of desc.methods) {
      const handler = handlers[method.localName];
      if (!isServed(method) || !handler) throw new Error(`${method.toString()} has no handler`);
      // Internal calls belong to work that was admitted elsewhere: refusing them would only leave it unfinished.
      const limited = !isInternal(method) && !(isDiagnostic && isUnary(method));
      const isSheddable = !isInternal(method) && !isDiagnostic;
      methods.set(rpcName(method), { method, handler, limited, isSheddable, isDiagnostic });
    }

  function entryOf(method: DescMethod): Entry {
    const entry = methods.get(rpcName(method));
    if (!entry) throw noSuchRpc(errors);
    return entry;
  }

  const expected = digest(secret ?? "");
  const isSecret = (given: unknown): boolean =>
    Boolean(secret) && typeof given === "string" && timingSafeEqual(digest(given), expected);
  /** Whether the headers contain the secret of the internal services. */
  const isTrusted = (headers: Headers): boolean => isSecret(headers.get(SECRET_HEADER));
  const isOwn = ({ isPeer, headers }: Incoming): boolean => isPeer ?? isTrusted(headers);

  const admission = createAdmission(deps);
  const logShed = createShedLog(deps);
  const runs = createRuns(methods.values(), admission, options);
  const streamCalls = createStreamCalls(runs, isOwn, options);

  /**
   * Throws OVERLOADED if there is no room for a call, before its message is read. Calls of the system's own processes are
   * never refused, for they belong to calls that were admitted elsewhere.
   */
  function shed(method: DescMethod, headers: Headers, isPeer = false, origin?: Caller["origin"]): void {
    if (!methods.get(rpcName(method))?.isSheddable || isPeer || isTrusted(headers)) return;
    if (admission.letIn(method, origin?.network, origin?.response)) return;
    logShed(method);
    throw runs.refused(method, rpcError("OVERLOADED", NO_ROOM));
  }

  /** Returns who calls, if they may call the method. Throws or rejects with an RpcError, after logging it. */
  function admit(method: DescMethod, headers: Headers, isPeer = isTrusted(headers)): Principal | Promise<Principal> {
    const refuse = (thrown: unknown): never => {
      throw runs.notAdmitted(method, headers, thrown);
    };
    try {
      if (isPeer) return { id: headers.get(CALLER_HEADER) || ANONYMOUS.id };
      if (isInternal(method)) throw rpcError("PERMISSION_DENIED", `This RPC is for ${system}'s own services.`);
      const principal = authentication ? authentication.admit(credentialsIn(headers), method) : ANONYMOUS;
      return principal instanceof Promise ? principal.catch(refuse) : principal;
    } catch (thrown) {
      return refuse(thrown);
    }
  }

  /** Returns no promise if callers need no credentials. */
  const principalOf = (method: DescMethod, { principal, headers, isPeer }: Incoming): Principal | Promise<Principal> =>
    principal ?? admit(method, headers, isPeer);
  const seenBy = (incoming: Incoming): string | undefined => {
    const seen = incoming.headers.get(SEEN_HEADER);
    return seen !== null && isOwn(incoming) ? seen : undefined;
  };

  const all: Calls = {
    async invoke(method, request, incoming) {
      const found = principalOf(method, incoming);
      const principal = found instanceof Promise ? await found : found;
      return runs.unary(entryOf(method), request, incoming, { principal, seen: seenBy(incoming) });
    },
    stream: (method, request, incoming) =>
      streamCalls.stream(entryOf(method), request, incoming, async () => ({
        principal: await principalOf(method, incoming),
        seen: seenBy(incoming),
      })),
  };
  // Calls that only tell how the process is would bury the others.
  const isTraced = (method: DescMethod): boolean => !methods.get(rpcName(method))?.isDiagnostic;
  const calls = traced(all, deps.tracing, isTraced, isOwn);

  return {
    ...calls,
    services: implementations.map(({ desc }) => desc),
    errors,
    clock: deps.clock,
    /** Whether callers from outside need credentials. */
    asksCallers: authentication !== undefined,
    /** Whether it matters that a trusted proxy has sent a call. */
    heedsProxies: deps.tracing !== undefined,
    isTrusted,
    /** Whether a request comes from one of the system's own processes, by their certificate or by their secret. */
    knowsPeer: (request: IncomingMessage): boolean => isProven(request) || isSecret(request.headers[SECRET_HEADER]),
    shed,
    admit,
    /** The unary method with the name "package.Service/Method", if there is one. */
    find(name: string) {
      const method = methods.get(name)?.method;
      return method && isUnary(method) ? method : undefined;
    },
    /**
     * To be called when the process stops: asks the streams to end (`StreamingCall.draining`), and after `drainMs` ends the
     * others with UNAVAILABLE.
     */
    drain: streamCalls.drain,
    /** What there is at the moment: unary calls that may be under way, those that are, and streams. */
    load: { limit: admission.limit, underWay: admission.underWay, streams: streamCalls.count },
    /** Adds every service to a Connect router. */
    routes: (router: ConnectRouter) => addRoutes(router, methods.values(), calls),
  };
}

/** What is known of the caller of a call by Connect. */
export const callerKey = createContextKey<Caller>(Object.freeze({}));

function addRoutes(router: ConnectRouter, methods: Iterable<Entry>, { invoke, stream }: Calls): void {
  const unary = (method: DescMethodUnary) => async (request: Message, context: HandlerContext) => {
    const answer = await invoke(method, request, {
      ...context.values.get(callerKey),
      headers: context.requestHeader,
      timeoutMs: context.timeoutMs(),
      signal: context.signal,
    });
    answer.headers.forEach((value, name) => void context.responseHeader.append(name, value));
    return answer.message;
  };
  const streaming = (method: DescMethodServerStreaming) => (request: Message, context: HandlerContext) =>
    stream(method, request, {
      ...context.values.get(callerKey),
      headers: context.requestHeader,
      timeoutMs: context.timeoutMs(),
      whenGone: (end) => onAbort(context.signal, end),
      responseHeaders: context.responseHeader,
    });
  for (const { method } of methods) router.rpc(method, (isUnary(method) ? unary(method) : streaming(method)) as never);
}
