/**
 * HTTP/1.1 and HTTP/2 on one port, with or without TLS. Without TLS, clients use HTTP/2 by prior knowledge ("h2c", RFC 9113
 * section 3.3); with TLS, ALPN (RFC 7301) has agreed on one of the two before.
 */
import { createServer as createHttp1, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import {
  constants,
  createServer as createHttp2,
  createSecureServer,
  type Http2SecureServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Logger } from "@petstore/runtime/log";
import { NO_PROXY } from "connect-transcoder/http";
import { type Port, ports } from "./closing.ts";
import { connectionOf, createConnections } from "./connections.ts";
import { mendHost } from "./host.ts";
import { refuseLate } from "./late-requests.ts";
import { defaultLimits, type OnePortLimits } from "./limits.ts";
import { continueWhenRead, DroppingResponse, LingeringResponse } from "./lingering.ts";
import { peek } from "./peek.ts";
import {
  createRequestBudget,
  holdRequest,
  isRefused,
  OPEN_REQUESTS,
  releaseRequest,
  whileWorking,
} from "./request-budget.ts";
import { type ServerTls, secureOptions } from "./secure.ts";
import { createSessions } from "./sessions.ts";
import { createTurns, readingAhead } from "./turns.ts";
import { limitUnread } from "./unread.ts";
import { behindAnswers, plainHttp, refusePlainly } from "./unreadable.ts";

export interface OnePortOptions {
  /** By default there is no TLS. */
  readonly tls?: ServerTls | undefined;
  /** Whether a request, and so its connection, comes from one of the system's own processes. By default none does. */
  readonly knowsPeer?: ((request: IncomingMessage) => boolean) | undefined;
  readonly log?: Logger | undefined;
}

/**
 * Returns a promise or nothing. The promise resolves when all work for the request has ended, whatever became of its
 * connection, and never rejects. It reads a body from the request, and not from the stream of it, unless a peer sent it.
 */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** Requests of one HTTP/1.1 connection that may wait for their answers. A client that sends more is cut off. */
const PIPELINED_REQUESTS = 10;

/** What one HTTP/2 connection may do before Node closes it. */
const floodLimits = {
  /** Frames that break the protocol but don't end the connection by themselves. */
  maxSessionInvalidFrames: 100,
  /** Megabytes that the connection's own state may take. */
  maxSessionMemory: 10,
  /** Streams that may be reset at once, and then each second. A peer resets all of its calls that run out of time. */
  streamResetBurst: 1000,
  streamResetRate: 33,
};

/** The first bytes of HTTP/2's preface, and of no HTTP/1.1 method (RFC 9113 section 3.4). */
const PREFACE = Buffer.from("PRI");
const isHttp2 = (head: Buffer): boolean | undefined =>
  head.length < PREFACE.length && PREFACE.indexOf(head) === 0 ? undefined : head.indexOf(PREFACE) === 0;

/** The first byte of a TLS handshake (RFC 8446, 5.1). */
const HANDSHAKE = 22;
const isHandshake = (head: Buffer): boolean => head[0] === HANDSHAKE;

/**
 * A server that hands each connection to HTTP/1.1 or HTTP/2. Both call the same handler, HTTP/2 by the compatibility API. It is
 * closed by `closePort`.
 *
 * Connections, requests and unread answers are bounded. A connection that breaks off never causes an uncaught error: requests
 * and responses have an error listener all their life.
 */
export function createOnePortServer(
  handler: Handler,
  limits: OnePortLimits = defaultLimits,
  { tls, knowsPeer = () => false, log }: OnePortOptions = {},
): Server {
  const secured = tls && secureOptions(tls, log);
  const connections = createConnections(limits, secured?.proves);
  const sessions = createSessions(limits);
  const { announceEnd, endIdle, endAll } = connections;
  const port: Port = { isClosing: false, goAway: sessions.goAway, announceEnd, endIdle, endAll };
  const follow = limitUnread(limits, log);
  const budget = createRequestBudget(limits.requestBytes);
  const inTurn = createTurns();

  const serve: Serve = (request, response) => {
    request.on("error", ignore);
    response.on("error", ignore);
    mendHost(request);
    const { stream, headers } = request;
    // Node's parser takes "HTTP/2.0" for a version of HTTP/1; it refuses most others by itself.
    if (!stream && request.httpVersionMajor !== 1)
      return void server.emit("clientError", new Error("Parse Error: Invalid HTTP version"), request.socket);
    const connection = connections.begin(request, response);
    if (!connection) return;
    // Node drops bytes behind a request that asks for an upgrade: what comes then would be read as if it began a request.
    connection.isLast = !stream && (headers.upgrade ?? headers["http2-settings"]) !== undefined;
    if (connection.isLast) response.setHeader("connection", "close");
    if (!stream && connection.open > PIPELINED_REQUESTS) return void request.destroy();
    if (!connection.isPeer && knowsPeer(request)) connections.trust(connection);
    if (connection.isPeer) allowPeer(stream?.session);
    const hold = connection.isPeer ? undefined : holdRequest(budget, request, limits.bodyBytes);
    const taken = follow(response, connection, stream?.session as ServerHttp2Session | undefined);
    if (stream)
      refuseLate(request, stream, limits.requestMs, (error) => void server.emit("clientError", error, stream));
    let giveUp = () => {};
    // Node does not report the close of a HEAD response over HTTP/2 that its handler has not ended.
    (stream ?? response).once("close", () => {
      connections.answered(connection);
      taken();
      hold?.release();
      giveUp();
    });
    if (hold && budget.open > OPEN_REQUESTS)
      return void (stream ? stream.close(constants.NGHTTP2_REFUSED_STREAM) : request.destroy());
    const begin = () => void whileWorking(request, () => handler(request, response));
    const inPieces = stream ? !stream.endAfterHeaders : "transfer-encoding" in headers;
    const isRead = request.method === "GET" || request.method === "HEAD";
    if (inPieces && isRead) request.resume(); // it has no meaning there (RFC 9110, 9.3.1)
    const isUpload = inPieces && !isRead;
    if (connection.isPeer || isRefused(request) || (isUpload && !stream)) begin();
    else giveUp = inTurn(isUpload && stream ? readingAhead(request, stream, begin) : begin);
  };

  const trusted = new WeakSet<object>();
  function allowPeer(session: ServerHttp2Stream["session"]): void {
    if (!session || trusted.has(session)) return;
    trusted.add(session);
    session.settings({ maxConcurrentStreams: limits.peerStreams });
  }

  const http1Options = {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: Math.min(limits.sniffMs, limits.requestMs),
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keptMs,
    connectionsCheckingInterval: Math.min(1000, limits.requestMs),
    requireHostHeader: false, // the handler checks it, so that the answer is its own
  };
  const settings = { maxConcurrentStreams: limits.concurrentStreams, maxHeaderListSize: limits.headerBytes };
  const http2Options = { settings, ...floodLimits, Http2ServerResponse: DroppingResponse };
  const server = secured
    ? createSecureServer({
        ...http1Options,
        ...http2Options,
        ...secured.options,
        allowHTTP1: true,
        http1Options: { ServerResponse: LingeringResponse },
        handshakeTimeout: limits.sniffMs,
      })
    : createHttp1({ ...http1Options, ServerResponse: LingeringResponse });
  const http2 = secured ? server : createHttp2(http2Options);
  secured?.follow(server as Http2SecureServer);
  if (secured) server.on("secureConnection", readAsStream);
  for (const each of new Set([server, http2])) takeRequests(each as Server, serve);
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (server.listenerCount("clientError") === 1) behindAnswers(socket, () => refusePlainly(error, socket));
  });
  http2.on("session", (session: ServerHttp2Session) => {
    const connection = connections.find(session.socket);
    if (!connection) return session.destroy();
    connection.isSession = true;
    sessions.add(session, connection.end);
    if (port.isClosing) session.close();
  });

  const http1Listeners = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    socket.on("error", ignore);
    if (!connections.admit(socket)) return void socket.destroy();
    const serveAsBefore = () => http1Listeners.forEach((listen) => void listen.call(server, socket));
    if (secured)
      return peek(socket, limits.sniffMs, isHandshake, (is) =>
        is ? serveAsBefore() : void server.emit("clientError", plainHttp(), socket),
      );
    peek(socket, limits.sniffMs, isHttp2, (is) => {
      if (!is) return serveAsBefore();
      // An HTTP/1.1 client that has ended its side still gets its answer; an HTTP/2 connection is over then.
      socket.allowHalfOpen = false;
      http2.emit("connection", socket);
    });
  });
  ports.set(server as Server, port);
  return server as Server;
}

const ignore = () => {};

/**
 * Lets Node's parser of HTTP/1.1 read from the stream of a TLS connection, as it does where "data" has a listener. From the
 * handle, several TLS records come at once, and while an answer is still being written the parser is paused after the first:
 * it takes the second for malformed (HPE_PAUSED).
 */
function readAsStream(socket: TLSSocket): void {
  if (socket.alpnProtocol !== "h2") socket.on("data", ignore);
}

type Serve = (request: IncomingMessage & { readonly stream?: ServerHttp2Stream }, response: ServerResponse) => void;

/** HTTP/2 requests that expect something, or ask for a tunnel, are requests like any other. */
function takeRequests(server: Server, serve: Serve): void {
  server.on("request", serve);
  server.on("checkContinue", (request: Parameters<Serve>[0], response) => {
    continueWhenRead(request, response);
    serve(request, response);
  });
  // An expectation other than 100-continue may be ignored (RFC 9110, 10.1.1).
  server.on("checkExpectation", serve);
  server.on("connect", (request: Parameters<Serve>[0], socket) => {
    if (request.stream) serve(request, socket as unknown as ServerResponse);
    // Answered like unreadable input. Node would close the connection and drop the requests that came before the CONNECT.
    else server.emit("clientError", Object.assign(new Error("CONNECT asks for a proxy"), { code: NO_PROXY }), socket);
  });
}

/** Counts a response as a stream: streams have a limit of their own, so it no longer takes from what short requests share. */
export function countAsStream(request: IncomingMessage, response: ServerResponse): void {
  releaseRequest(request);
  const end = connectionOf(request)?.beginStream();
  if (!end) return;
  const { stream } = request as { readonly stream?: ServerHttp2Stream };
  (stream ?? response).once("close", end);
}
