/** Every RPC of a service passes through here, whichever way it came: alone, in a batch, or from a simulation. */
import {
  create,
  type DescMethodUnary,
  type DescService,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { Code, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import type { Runtime } from "@petstore/runtime/clock";
import { validate } from "connect-transcoder/validation/validate";
import { type Call, openCall } from "../call.ts";
import type { ErrorCatalogue, RpcError } from "../errors/catalogue.ts";
import { createErrorTranslation, outOfTime, type StoreFailureOf, violationError } from "../errors/translate.ts";
import { createAuthorization, isInternal } from "./authorization.ts";
import { maxRequestBytes } from "./request-limit.ts";

/** Handles one RPC. It reads like its rule; whatever it throws becomes an error of the catalogue. */
export type Handler<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request: MessageShape<I>, call: Call) => Promise<MessageInitShape<O>> | MessageInitShape<O>
    : never;

/** A handler for every RPC of a service. */
export type Handlers<S extends DescService> = { [K in keyof S["method"]]: Handler<S["method"][K]> };

type AnyHandler = (request: Message, call: Call) => Promise<MessageInitShape<DescMethodUnary["output"]>>;

/** A service together with its handlers. */
export interface Implementation {
  readonly desc: DescService;
  readonly handlers: Readonly<Record<string, AnyHandler>>;
}
export const implement = <S extends DescService>(desc: S, handlers: Handlers<S>): Implementation => ({
  desc,
  handlers: handlers as unknown as Implementation["handlers"],
});

/** What came with a call besides its message. */
export interface Incoming {
  readonly headers: Headers;
  /** Milliseconds until the caller gives up; undefined when it set no limit. */
  readonly timeoutMs: number | undefined;
}

export interface Answer {
  readonly message: Message;
  readonly headers: Headers;
}

export interface Dispatcher {
  readonly services: readonly DescService[];
  readonly errors: ErrorCatalogue;
  /** "package.Service/Method" to the method. */
  find(name: string): DescMethodUnary | undefined;
  /** True for a caller that knows the secret of the internal services. */
  isTrusted(headers: Headers): boolean;
  /** Runs one call. Rejects with a RpcError and nothing else. */
  invoke(method: DescMethodUnary, request: Message, incoming: Incoming): Promise<Answer>;
  /** Adds every service to a Connect router. */
  routes(router: ConnectRouter): void;
}

export interface DispatcherOptions {
  readonly deps: Pick<Runtime, "clock" | "random" | "log">;
  readonly errors: ErrorCatalogue;
  /** By default no failure of a handler is one of a store. */
  readonly storeFailureOf?: StoreFailureOf;
  /** What callers of internal services must know. */
  readonly secret: string;
  /** Longest that any call may take, in milliseconds. */
  readonly maxTimeoutMs?: number;
  /** Most calls of public services that are worked on at once; more are refused with OVERLOADED. */
  readonly maxCalls?: number;
}

/** So much before the deadline a timer that was set to it may fire. */
const EARLY_MS = 2;

const methodName = (method: DescMethodUnary): string => `${method.parent.typeName}/${method.name}`;

/** Puts services behind one dispatcher: deadline, authorization, validation, handler, errors, log. */
export function createDispatcher(implementations: readonly Implementation[], options: DispatcherOptions): Dispatcher {
  const { deps, secret, errors, maxTimeoutMs = 10_000, maxCalls = 10_000 } = options;
  const { rpcError } = errors;
  const { isBug, toRpcError } = createErrorTranslation(errors, options.storeFailureOf);
  const { isTrusted, authenticate, authorize } = createAuthorization(secret, errors);
  const methods = new Map<string, { method: DescMethodUnary; handler: AnyHandler }>();
  for (const { desc, handlers } of implementations)
    for (const method of desc.methods) {
      const handler = handlers[method.localName];
      if (method.methodKind !== "unary" || !handler) throw new Error(`${method.toString()} has no handler`);
      methods.set(methodName(method as DescMethodUnary), { method: method as DescMethodUnary, handler });
      // The first validation of a message compiles its rules, which takes longer than the rest of a call.
      validate(method.input, create(method.input));
    }

  async function run(method: DescMethodUnary, request: Message, call: Call): Promise<Message> {
    const { handler } = methods.get(methodName(method)) ?? {};
    if (!handler) throw new Error(`${methodName(method)} is not served here`);
    const violations = validate(method.input, request);
    if (violations.length > 0) throw violationError(errors, violations);
    const message = await handler(request, call);
    return "$typeName" in message ? (message as Message) : create(method.output, message);
  }

  let underWay = 0;
  /** Counts until the handler is done, which may be after its caller was answered. */
  async function runCounted(method: DescMethodUnary, request: Message, call: Call): Promise<Message> {
    underWay++;
    try {
      return await run(method, request, call);
    } finally {
      underWay--;
    }
  }

  async function invoke(method: DescMethodUnary, request: Message, incoming: Incoming): Promise<Answer> {
    // Internal calls belong to work that was admitted elsewhere: to refuse them would only leave it unfinished.
    if (underWay >= maxCalls && !isInternal(method))
      throw rpcError("OVERLOADED", "The service has too much to do. Try again in a second.");
    const started = deps.clock();
    const principal = authenticate(incoming.headers);
    const call = openCall(incoming, { ...deps, maxTimeoutMs, principal });
    const writes = method.idempotency !== Level.NO_SIDE_EFFECTS;
    let failure: RpcError | undefined;
    let bug = false;
    try {
      authorize(principal, method);
      const message = await inTime(runCounted(method, request, call), call.deadline - started, () =>
        rpcError("DEADLINE_EXCEEDED", outOfTime(writes)),
      );
      return { message, headers: call.responseHeaders };
    } catch (thrown) {
      const isLate = deps.clock() >= call.deadline - EARLY_MS;
      failure = toRpcError(thrown, { requestId: call.requestId, isLate, writes });
      bug = isBug(thrown);
      throw failure;
    } finally {
      const { requestId, caller } = call;
      const entry = { rpc: methodName(method), requestId, caller, ms: Math.round(deps.clock() - started) };
      if (!failure) deps.log.debug(entry, "served");
      else if (bug) deps.log.error({ ...entry, err: failure.cause }, failure.rawMessage);
      else if (failure.code === Code.Unavailable)
        deps.log.warn({ ...entry, cause: oneLine(failure.cause) }, failure.rawMessage);
      else deps.log.debug({ ...entry, code: Code[failure.code] }, failure.rawMessage);
    }
  }

  const handle = (method: DescMethodUnary) => async (request: Message, context: HandlerContext) => {
    const answer = await invoke(method, request, {
      headers: context.requestHeader,
      timeoutMs: context.timeoutMs(),
    });
    answer.headers.forEach((value, name) => void context.responseHeader.append(name, value));
    return answer.message;
  };

  return {
    services: implementations.map(({ desc }) => desc),
    errors,
    find: (name) => methods.get(name)?.method,
    isTrusted,
    invoke,
    routes(router) {
      for (const { method } of methods.values())
        router.rpc(method, handle(method) as never, { readMaxBytes: maxRequestBytes(method) });
    },
  };
}

/** What passes by itself needs no stack. */
const oneLine = (cause: unknown): string => (cause instanceof Error ? cause.message : `${cause}`);

/** The handler goes on when its caller's time is up: what it has begun is better finished than left to a sweeper. */
async function inTime<T>(work: Promise<T>, ms: number, outOfTime: () => RpcError): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(outOfTime()), Math.max(0, ms));
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
