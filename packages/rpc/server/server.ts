/** One process's RPC server: gRPC, gRPC-Web and Connect, with health and reflection, on one port. */
import type { Server } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { createConnectRouter, type HandlerContext } from "@connectrpc/connect";
import type { Logger } from "@petstore/runtime/log";
import { origin } from "../http/address.ts";
import { createHostCheck } from "../http/allowed-hosts.ts";
import type { ServerTls } from "../http/handshakes.ts";
import { acceptWaiting, type ListenAdvice, listen } from "../http/listen.ts";
import { createOnePortServer, defaultLimits, type OnePortLimits } from "../http/one-port.ts";
import { createLinkServer } from "../link/server.ts";
import { isPeerRequest } from "./authorization.ts";
import { limitedCompressions } from "./compressions.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { Gate } from "./grpc-stream.ts";
import type { HealthState } from "./health.ts";
import { createListener } from "./listener.ts";
import { MAX_MESSAGE_BYTES } from "./message-limit.ts";
import { serveReflection } from "./reflection.ts";
import { maxRequestBytes } from "./request-limit.ts";
import { callerKey } from "./routes.ts";
import { strictJson } from "./strict-json.ts";
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
  readonly listenAdvice?: ListenAdvice;
  /** Most bytes of a method's request message; by default what its fields can hold. */
  readonly maxBytesOf?: ((method: DescMethod) => number) | undefined;
}

export interface RpcServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Reports NOT_SERVING, accepts no new connections, finishes running requests, and cuts off those left after `graceMs`. */
  close(graceMs?: number): Promise<void>;
}

/** Resolves when the server takes calls. Rejects with `ListenError` if it can't listen and there is advice. */
export async function startRpcServer(options: RpcServerOptions): Promise<RpcServer> {
  const { host, log, dispatcher, health, limits = defaultLimits, tls, allowedHosts } = options;
  const { maxBytesOf = maxRequestBytes } = options;
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
    readMaxBytes: MAX_MESSAGE_BYTES,
    writeMaxBytes: MAX_MESSAGE_BYTES,
    acceptCompression: compressions,
    jsonOptions: strictJson,
    ...unreadable,
    requestGate,
  });
  const links = createLinkServer({ dispatcher, log });
  dispatcher.routes(router);
  links.routes(router);
  const stopping = new AbortController();
  serveReflection(router, dispatcher.services, stopping.signal);

  const listener = createListener(router.handlers, { gate, compressions, links, log, dispatcher, maxBytesOf });
  const server = createOnePortServer(listener, limits, {
    knowsPeer: (request) => isPeerRequest(dispatcher, request),
    tls,
    checkHost: allowedHosts && createHostCheck(allowedHosts),
    log,
  });
  const port = await listen(server, { host, port: options.port }, options.listenAdvice);
  health.set(true);
  let closed: Promise<void> | undefined;
  const close = (graceMs = GRACE_MS) => {
    health.drain();
    links.drain();
    stopping.abort();
    closed ??= closeServer(server, dispatcher, graceMs);
    return closed;
  };
  return { url: origin(host, port, tls && "https"), port, close, [Symbol.asyncDispose]: () => close() };
}

/** Closes a server once its running requests are done, or after `graceMs` milliseconds. */
async function closeServer(server: Server, dispatcher: Dispatcher, graceMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const cutOff = setTimeout(() => server.closeAllConnections(), graceMs);
  await acceptWaiting(server);
  server.close(() => resolve());
  // Only now: callers of streams come back at once, and must not reach a server that still listens.
  dispatcher.drain();
  await promise;
  clearTimeout(cutOff);
}
