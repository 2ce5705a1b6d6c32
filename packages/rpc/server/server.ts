/** One process's RPC server: gRPC, gRPC-Web and Connect, with health and reflection, on one port. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createConnectRouter, createContextValues } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { Logger } from "@petstore/runtime/log";
import { splitTarget } from "connect-transcoder/http";
import { keepRepeated } from "../auth/credentials.ts";
import { Health } from "../gen/health/v1/health_pb.ts";
import { origin } from "../http/address.ts";
import { answerPlainly, inWords } from "../http/answers.ts";
import { isProven } from "../http/connections.ts";
import { type CallerAddress, callerAddress, createHostCheck, type HostCheck } from "../http/hosts.ts";
import { defaultLimits, MAX_MESSAGE_BYTES, type OnePortLimits } from "../http/limits.ts";
import { type ListenAdvice, listen } from "../http/listen.ts";
import { closePort, createOnePortServer } from "../http/one-port.ts";
import { refusing } from "../http/refusals.ts";
import { countAsStream, type Handler } from "../http/requests.ts";
import { createLinkServer, type LinkServer } from "../link/server.ts";
import type { ServerTls } from "../tls/certificates.ts";
import {
  dropEndlessTimeout,
  explainUnreadable,
  knownFields,
  limitedCompressions,
  noteDecoded,
  strictJson,
} from "./connect.ts";
import { callerKey, type Dispatcher } from "./dispatcher.ts";
import { type Gate, type GrpcStreamOptions, isBinaryGrpc, type ServeStream, serveGrpcStream } from "./grpc-stream.ts";
import { isServerStreaming } from "./handlers.ts";
import type { HealthState } from "./health.ts";
import { limitCall } from "./message-limit.ts";
import { serveReflection } from "./reflection.ts";
import { judgeTypes, NO_SUCH_RPC, unknownRpcAnswer } from "./refused-calls.ts";
import type { Caller } from "./run.ts";
import { endedBy } from "./until.ts";

/** How long running requests may go on once the server closes, in milliseconds. */
const GRACE_MS = 8000;

export interface RpcServerOptions {
  readonly host: string;
  /** 0 lets the system choose one. */
  readonly port: number;
  readonly log: Logger;
  readonly dispatcher: Dispatcher;
  /** Set to SERVING when the server listens, and drained when it closes. */
  readonly health: HealthState;
  readonly limits?: OnePortLimits;
  /** By default there is no TLS. */
  readonly tls?: ServerTls | undefined;
  /** The host names that strangers' requests may use, see `createHostCheck`; by default any. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Tells strangers apart that show no credentials; by default their connections do. */
  readonly addressOf?: CallerAddress | undefined;
  readonly listenAdvice?: ListenAdvice;
  /** Most bytes of a request message. */
  readonly maxBytes?: number | undefined;
}

export type RpcServer = Awaited<ReturnType<typeof startRpcServer>>;

/** Resolves when the server takes calls. Rejects with `ListenError` if it can't listen and there is advice. */
export async function startRpcServer(options: RpcServerOptions) {
  const { host, log, dispatcher, health, limits = defaultLimits, tls, allowedHosts } = options;
  const { maxBytes = MAX_MESSAGE_BYTES, addressOf = callerAddress([]) } = options;
  const { errors } = dispatcher;
  /** Runs before a message is read, for every RPC: also for reflection and links, which the dispatcher does not serve. */
  const gate: Gate = async (method, headers, caller) => {
    dispatcher.shed(method, headers, caller.isPeer, caller.origin);
    if (dispatcher.asksCallers) caller.principal = await dispatcher.admit(method, headers, caller.isPeer);
  };
  const compressions = limitedCompressions(errors);
  // Connect's limit of timeouts would refuse calls that ask for more: the dispatcher shortens their time instead.
  const router = createConnectRouter({
    readMaxBytes: maxBytes,
    writeMaxBytes: MAX_MESSAGE_BYTES,
    acceptCompression: compressions,
    binaryOptions: knownFields,
    jsonOptions: strictJson,
    interceptors: [noteDecoded],
    async requestGate(context) {
      await gate(context.method, context.requestHeader, context.values.get(callerKey));
      explainUnreadable(context, errors);
    },
  });
  const links = createLinkServer({ dispatcher, log });
  dispatcher.routes(router);
  links.routes(router);
  const stopping = new AbortController();
  serveReflection(router, dispatcher.services, stopping.signal);

  const calls = { gate, compressions, maxBytes, links, log, dispatcher, addressOf };
  const listener = createListener(router.handlers, calls);
  const checkHost = allowedHosts && exceptProbes(createHostCheck(allowedHosts));
  const { knowsPeer } = dispatcher;
  const refused = refusing(listener, { headerBytes: limits.headerBytes, checkHost, knowsPeer });
  const server = createOnePortServer(refused, limits, { knowsPeer, tls, log });
  const port = await listen(server, { host, port: options.port }, options.listenAdvice);
  health.set(true);
  let closed: Promise<void> | undefined;
  /** Reports NOT_SERVING, accepts no new connections, finishes running requests, and cuts off those left after `graceMs`. */
  const close = (graceMs = GRACE_MS): Promise<void> => {
    health.drain();
    links.drain();
    stopping.abort();
    // Streams end only once the server does not listen: their callers come back at once.
    closed ??= closePort(server, graceMs, dispatcher.drain);
    return closed;
  };
  return { url: origin(host, port, tls && "https"), port, close, [Symbol.asyncDispose]: () => close() };
}

export interface ListenerOptions extends Omit<GrpcStreamOptions, "giveUp"> {
  readonly links: LinkServer;
  readonly log: Logger;
  readonly dispatcher: Dispatcher;
  readonly addressOf: CallerAddress;
}

/** Routes each request to a link, to a stream in binary gRPC, or to Connect, with what is known of its caller. */
export function createListener(handlers: readonly UniversalHandler[], options: ListenerOptions): Handler {
  const { links, log, dispatcher, maxBytes, addressOf } = options;
  const { errors, asksCallers, heedsProxies } = dispatcher;
  const byPath = new Map(
    handlers.map((handler) => [handler.requestPath, { handler, judge: judgeTypes(handler.method, errors) }]),
  );
  /** Errors of a handler are sent as responses. This handles requests that are not valid HTTP, and clients that have gone. */
  const giveUp = ({ url = "" }: IncomingMessage, response: ServerResponse, err: unknown): void => {
    log.debug({ err, path: url.split("?", 1)[0] }, "no answer could be sent");
    response.destroy();
  };
  /** What is known of the caller before its headers are read. */
  const whoAsks = (request: IncomingMessage, response: ServerResponse): Caller =>
    isProven(request)
      ? { isPeer: true }
      : {
          isProxy: heedsProxies && addressOf.isProxy?.(request) === true,
          origin: { network: addressOf(request), response, countAsStream: () => countAsStream(request, response) },
        };
  const streams = new Map<string, ServeStream>();
  for (const { method, requestPath } of handlers)
    if (isServerStreaming(method)) streams.set(requestPath, serveGrpcStream(method, { ...options, giveUp }));
  const serveByConnect = (handler: UniversalHandler, caller: Caller, ...[request, response]: Parameters<Handler>) => {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const answer = async () => {
      const values = createContextValues().set(callerKey, caller);
      const call = universalRequestFromNodeRequest(request, response, undefined, values);
      dropEndlessTimeout(call.header);
      const { body, ...head } = await handler(limitCall(call, request, handler.method, maxBytes, errors));
      if (!body) resolve();
      const whole = body && endedBy(call.signal, noting(body, resolve));
      await universalResponseToNodeResponse({ ...head, ...(whole && { body: whole }) }, response);
    };
    answer().catch((error: unknown) => {
      giveUp(request, response, error);
      resolve();
    });
    // Some protocols run the RPC while its response is read, so wait for that end. Its client may take longer to read it.
    return ended;
  };
  const serve: Handler = (request, response) => {
    const link = links.serve(request, response);
    if (link) return link;
    // Without this, caches may store the response to a GET (RFC 9111, 4.2.2) and serve it to other callers.
    if (request.method === "GET") response.setHeader("cache-control", "no-store");
    const { path, query } = splitTarget(request.url ?? "");
    const found = byPath.get(path);
    if (!found) {
      const answer = unknownRpcAnswer(request, query, errors) ?? inWords(404, NO_SUCH_RPC);
      return answerPlainly(request, response, answer);
    }
    const { handler, judge } = found;
    const { allowedMethods } = handler;
    if (!allowedMethods.includes(request.method ?? "")) {
      const words = `This RPC is called by ${allowedMethods.join(" or ")}.`;
      return answerPlainly(request, response, inWords(405, words, { allow: allowedMethods.join(", ") }));
    }
    const refusal = judge(request, query);
    if (refusal)
      return answerPlainly(request, response, refusal.answer ?? inWords(415, refusal.message, refusal.headers));
    if (asksCallers) keepRepeated(request);
    const caller = whoAsks(request, response);
    const serveStream = isBinaryGrpc(request) ? streams.get(path) : undefined;
    if (serveStream) return serveStream(request, response, caller);
    return serveByConnect(handler, caller, request, response);
  };
  return (request, response) => {
    try {
      return serve(request, response);
    } catch (error) {
      giveUp(request, response, error);
    }
  };
}

async function* noting<T>(items: AsyncIterable<T>, ended: () => void): AsyncGenerator<T, void> {
  try {
    yield* items;
  } finally {
    ended();
  }
}

/** Health answers whatever host is named: probes ask by whatever address they know. */
const exceptProbes =
  (check: HostCheck): HostCheck =>
  (request) =>
    splitTarget(request.url ?? "").path.startsWith(`/${Health.typeName}/`) ? undefined : check(request);
