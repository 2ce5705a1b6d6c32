/** One process's RPC server: gRPC, gRPC-Web and Connect, with health and reflection, on one port. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { type ContextValues, createConnectRouter, createContextValues, type HandlerContext } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import type { Logger } from "@petstore/runtime/log";
import { keepRepeated } from "../auth/credentials.ts";
import type { ErrorCatalogue } from "../errors/catalogue.ts";
import { createLinkServer, type LinkServer } from "../link/server.ts";
import { createHostCheck } from "./allowed-hosts.ts";
import { isPeerRequest } from "./authorization.ts";
import { countAsStream, isProven, networkOf } from "./connections.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { ServerTls } from "./handshakes.ts";
import type { HealthState } from "./health.ts";
import { ensureHost } from "./host.ts";
import { acceptWaiting, type ListenAdvice, listen, origin } from "./listen.ts";
import { limitCall, limitUnpacked, MAX_MESSAGE_BYTES } from "./message-limit.ts";
import { type Beside, besideKey, withRest } from "./messages-past-connect.ts";
import { createOnePortServer, defaultLimits, type Handler, type OnePortLimits } from "./one-port.ts";
import { shortenProtocolFields } from "./protocol-fields.ts";
import { serveReflection } from "./reflection.ts";
import { maxRequestBytes } from "./request-limit.ts";
import { askedKey, isPeerKey, principalKey } from "./routes.ts";
import { strictJson } from "./strict-json.ts";
import { NO_SUCH_RPC, unknownRpcAnswer } from "./unknown-rpc.ts";
import { explainUnreadable } from "./unreadable-message.ts";
import { endedBy } from "./until.ts";

/** How long requests that run may go on once the server closes. */
const GRACE_MS = 8000;

export interface RpcServerOptions {
  readonly host: string;
  /** 0 lets the system choose one. */
  readonly port: number;
  readonly log: Logger;
  readonly dispatcher: Dispatcher;
  /** It serves when the server listens, and drains when the server closes. */
  readonly health: HealthState;
  readonly limits?: OnePortLimits;
  /** By default there is no TLS. */
  readonly tls?: ServerTls | undefined;
  /** The names that strangers may call it by, see `createHostCheck`; by default any. */
  readonly allowedHosts?: readonly string[] | undefined;
  readonly listenAdvice?: ListenAdvice;
}

export interface RpcServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Not ready, accepts nothing new, finishes what runs; cuts off what still runs after `graceMs`. */
  close(graceMs?: number): Promise<void>;
}

/** Resolves when the server takes calls. Throws `ListenError`. */
export async function startRpcServer(options: RpcServerOptions): Promise<RpcServer> {
  const { host, log, dispatcher, health, limits = defaultLimits, tls, allowedHosts } = options;
  const { errors } = dispatcher;
  const unreadable = explainUnreadable(errors);
  /** Before its message is read, and whatever is called: reflection and links too, which the dispatcher does not serve. */
  const requestGate = async (context: HandlerContext) => {
    const { method, requestHeader, values } = context;
    const isPeer = values.get(isPeerKey);
    dispatcher.shed(method, requestHeader, isPeer, values.get(askedKey));
    if (dispatcher.asksCallers) values.set(principalKey, await dispatcher.admit(method, requestHeader, isPeer));
    await unreadable.requestGate(context);
  };
  // A limit on the time that callers may ask for would refuse those who ask for more: the dispatcher lowers it instead.
  const router = createConnectRouter({
    readMaxBytes: MAX_MESSAGE_BYTES,
    writeMaxBytes: MAX_MESSAGE_BYTES,
    acceptCompression: [compressionGzip, compressionBrotli].map(limitUnpacked(errors)),
    jsonOptions: strictJson,
    ...unreadable,
    requestGate,
  });
  const links = createLinkServer({ dispatcher, log });
  dispatcher.routes(router);
  links.routes(router);
  serveReflection(router, dispatcher.services);

  const server = createOnePortServer(createListener(router.handlers, { links, log, dispatcher }), limits, {
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
    closed ??= closeServer(server, dispatcher, graceMs);
    return closed;
  };
  return { url: origin(host, port, tls && "https"), port, close, [Symbol.asyncDispose]: () => close() };
}

function createListener(
  handlers: readonly UniversalHandler[],
  { links, log, dispatcher }: { links: LinkServer; log: Logger; dispatcher: Dispatcher },
): Handler {
  const { errors, asksCallers } = dispatcher;
  const byPath = new Map(handlers.map((handler) => [handler.requestPath, handler]));
  return async (request, response) => {
    const [path = "", query = ""] = (request.url ?? "").split("?", 2);
    const handler = byPath.get(path);
    const failed = (err: unknown) => {
      // Errors of a handler are answers. What arrives here is a request that is no HTTP, or a client that has gone.
      log.debug({ err, path }, "no answer could be sent");
      response.destroy();
    };
    const link = links.serve(request, response);
    if (link) return link;
    try {
      if (!handler) return answerUnknown(request, response, query, errors);
      ensureHost(request);
      if (asksCallers) keepRepeated(request);
      const call = shortenProtocolFields(
        universalRequestFromNodeRequest(request, response, undefined, whoAsks(request, response)),
      );
      const beside: Beside = { answer: response, signal: call.signal };
      call.contextValues?.set(besideKey, beside);
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      handler(limitCall(call, request, maxRequestBytes(handler.method), errors))
        .then(({ body, ...answer }) => {
          if (!body) resolve();
          const whole = body && endedBy(call.signal, noting(withRest(body, answer.trailer, beside), resolve));
          return universalResponseToNodeResponse({ ...answer, ...(whole && { body: whole }) }, response);
        })
        .catch((error: unknown) => {
          failed(error);
          resolve();
        });
      // Some protocols run the RPC while its answer is read. The answer itself may wait for its client.
      await ended;
    } catch (err) {
      failed(err);
    }
  };
}

/** What is known of the caller before its headers are looked at. */
const whoAsks = (request: IncomingMessage, response: ServerResponse): ContextValues =>
  isProven(request)
    ? createContextValues().set(isPeerKey, true)
    : createContextValues().set(askedKey, {
        network: networkOf(request),
        answer: response,
        lasts: () => countAsStream(request, response),
      });

/** Drops the rest of the request, so that its client comes to read the answer. */
function answerUnknown(
  request: IncomingMessage,
  response: ServerResponse,
  query: string,
  errors: ErrorCatalogue,
): void {
  request.resume();
  const { status, headers, body } = unknownRpcAnswer(
    {
      method: request.method,
      query,
      contentType: request.headers["content-type"],
    },
    errors,
  ) ?? { status: 404, headers: { "content-type": "text/plain" }, body: `${NO_SUCH_RPC}\n` };
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  // Trailers-Only is one frame: gRPC's own clients see no status when an empty one follows to end the stream.
  response.end(body.length > 0 ? body : undefined);
}

async function* noting<T>(items: AsyncIterable<T>, ended: () => void): AsyncGenerator<T, void> {
  try {
    yield* items;
  } finally {
    ended();
  }
}

/** Finishes what runs on a server, for so many milliseconds at most. */
async function closeServer(server: Server, dispatcher: Dispatcher, graceMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const cutOff = setTimeout(() => server.closeAllConnections(), graceMs);
  await acceptWaiting(server);
  server.close(() => resolve());
  // Their callers come back at once, and not to a server that still listens.
  dispatcher.drain();
  await promise;
  clearTimeout(cutOff);
}
