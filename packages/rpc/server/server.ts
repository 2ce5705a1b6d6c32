/** One process's RPC server: gRPC, gRPC-Web and Connect, with health and reflection, on one port. */
import type { IncomingMessage } from "node:http";
import { createConnectRouter, type HandlerContext } from "@connectrpc/connect";
import type { Logger } from "@petstore/runtime/log";
import { splitTarget } from "connect-transcoder/http";
import { Health } from "../gen/health/v1/health_pb.ts";
import { origin } from "../http/address.ts";
import { type CallerAddress, callerAddress, createHostCheck, type HostCheck } from "../http/hosts.ts";
import { defaultLimits, MAX_MESSAGE_BYTES, type OnePortLimits } from "../http/limits.ts";
import { type ListenAdvice, listen } from "../http/listen.ts";
import { closePort, createOnePortServer } from "../http/one-port.ts";
import { refusing } from "../http/refusals.ts";
import { createLinkServer } from "../link/server.ts";
import type { ServerTls } from "../tls/certificates.ts";
import { isPeerRequest } from "./authorization.ts";
import { knownFields, limitedCompressions, strictJson } from "./connect-options.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { Gate } from "./grpc-stream.ts";
import type { HealthState } from "./health.ts";
import { createListener } from "./listener.ts";
import { serveReflection } from "./reflection.ts";
import { callerKey } from "./routes.ts";
import { explainUnreadable } from "./unreadable-message.ts";

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
  const unreadable = explainUnreadable(errors);
  /** Runs before a message is read, for every RPC: also for reflection and links, which the dispatcher does not serve. */
  const gate: Gate = async (method, headers, caller) => {
    dispatcher.shed(method, headers, caller.isPeer, caller.origin);
    if (dispatcher.asksCallers) caller.principal = await dispatcher.admit(method, headers, caller.isPeer);
  };
  const requestGate = async (context: HandlerContext) => {
    await gate(context.method, context.requestHeader, context.values.get(callerKey));
    await unreadable.requestGate(context);
  };
  const compressions = limitedCompressions(errors);
  // Connect's limit of timeouts would refuse calls that ask for more: the dispatcher shortens their time instead.
  const router = createConnectRouter({
    readMaxBytes: maxBytes,
    writeMaxBytes: MAX_MESSAGE_BYTES,
    acceptCompression: compressions,
    binaryOptions: knownFields,
    jsonOptions: strictJson,
    ...unreadable,
    requestGate,
  });
  const links = createLinkServer({ dispatcher, log });
  dispatcher.routes(router);
  links.routes(router);
  const stopping = new AbortController();
  serveReflection(router, dispatcher.services, stopping.signal);

  const calls = { gate, compressions, links, log, dispatcher, maxBytes, addressOf };
  const listener = createListener(router.handlers, calls);
  const knowsPeer = (request: IncomingMessage) => isPeerRequest(dispatcher, request);
  const checkHost = allowedHosts && exceptProbes(createHostCheck(allowedHosts));
  const { headerBytes } = limits;
  const server = createOnePortServer(refusing(listener, { headerBytes, checkHost, knowsPeer }), limits, {
    knowsPeer,
    tls,
    log,
  });
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

/** Health answers whatever host is named: probes ask by whatever address they know. */
const exceptProbes =
  (check: HostCheck): HostCheck =>
  (request) =>
    splitTarget(request.url ?? "").path.startsWith(`/${Health.typeName}/`) ? undefined : check(request);
