/**
 * HTTP/1.1 and HTTP/2 on one port, with or without TLS. Without TLS, clients use HTTP/2 by prior knowledge ("h2c", RFC 9113
 * section 3.3); with TLS, ALPN (RFC 7301) has agreed on one of the two before.
 */
import { createServer as createHttp1, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { hostProblem } from "connect-transcoder/request/host";
import type { HostCheck } from "./allowed-hosts.ts";
import { callerNetwork } from "./caller-network.ts";
import { countData } from "./connection.ts";
import { type ConnectionLimits, defaultConnectionLimits, type GuardOptions, guardConnections } from "./connections.ts";
import { framesInTurns } from "./frames-in-turns.ts";
import { createHandshakes, type Secure, type ServerTls } from "./handshakes.ts";
import { createLimitedHttp2 } from "./limited-http2.ts";
import { peek } from "./peek.ts";
import { readInTurns } from "./read-in-turns.ts";
import { isRefused, TOO_MANY_UNDER_WAY, whileWorking } from "./request-memory.ts";
import { createServerTurns } from "./turns.ts";

export interface OnePortOptions extends Omit<GuardOptions, "secure"> {
  /** By default there is no TLS. */
  readonly tls?: ServerTls | undefined;
  /** Which hosts strangers' requests may name; by default any. */
  readonly checkHost?: HostCheck | undefined;
}

export interface OnePortLimits extends ConnectionLimits {
  /** Time for a connection to send the bytes that tell its protocol. */
  readonly sniffMs: number;
  /** Time for a request to arrive completely. Then HTTP/2 resets it, and HTTP/1.1 answers 408. */
  readonly requestMs: number;
  /** An HTTP/2 connection is closed after this time without traffic, unless it waits for responses. */
  readonly idleMs: number;
  /** Interval of the pings to an HTTP/2 client that waits for responses. */
  readonly keepAliveMs: number;
  /** All header fields of one request together. */
  readonly headerBytes: number;
  /** Requests at a time on one HTTP/2 connection of a stranger. */
  readonly concurrentStreams: number;
  /** The same for a peer, which uses one connection and may have many calls in flight. */
  readonly peerStreams: number;
}

export const defaultLimits: OnePortLimits = {
  ...defaultConnectionLimits,
  sniffMs: 10_000,
  requestMs: 30_000,
  idleMs: 600_000,
  keepAliveMs: 15_000,
  headerBytes: 16 * 1024,
  concurrentStreams: 100,
  peerStreams: 1000,
};

/**
 * Returns a promise or nothing. The promise resolves when all work for the request has ended, whatever became of its
 * connection, and never rejects.
 */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** Once the server closes, connections accepted before have this long to send the bytes that tell their protocol. */
const LAST_SNIFF_MS = 1_000;

/** The first bytes of HTTP/2's preface, and of no HTTP/1.1 method (RFC 9113 section 3.4). */
const PREFACE = Buffer.from("PRI");

const isHttp2 = (head: Buffer): boolean | undefined =>
  head.length < PREFACE.length && PREFACE.indexOf(head) === 0 ? undefined : head.indexOf(PREFACE) === 0;

/**
 * A server that looks at the first bytes of each connection and hands it to HTTP/1.1 or HTTP/2. It is used like a
 * `node:http` server, and its `close` is graceful for both: requests that run or are in flight are finished, HTTP/2 clients
 * are told to go elsewhere (two GOAWAY frames), idle connections end. `closeAllConnections` cuts off what remains.
 */
export function createOnePortServer(
  handler: Handler,
  limits: OnePortLimits = defaultLimits,
  options: OnePortOptions = {},
): Server {
  const http1 = createHttp1(
    {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: Math.min(limits.sniffMs, limits.requestMs),
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: Math.min(1000, limits.requestMs),
      requireHostHeader: false, // `forHost` checks it
    },
    limitHeaders(forMemory(forHost(handler, options)), limits.headerBytes),
  );
  openOnePort(http1, limits, options);
  // Answered like unreadable input. Node would close the connection and drop the requests that came before the CONNECT.
  http1.on("connect", ({ socket }) => http1.emit("clientError", new Error("CONNECT asks for a proxy"), socket));
  http1.prependListener("request", (_, response) => {
    if (!http1.listening) response.setHeader("connection", "close");
  });
  return http1;
}

/**
 * Makes such a server of an existing HTTP/1.1 server. HTTP/2 requests go to the same listener, by the compatibility API.
 * Must be called before other listeners are added.
 */
export function openOnePort(http1: Server, limits: OnePortLimits, { tls, ...options }: OnePortOptions = {}): void {
  const [handler] = http1.listeners("request") as [Handler];
  const sockets = new Set<Socket>();
  const undecided = new Set<Socket>();

  const turns = createServerTurns();
  const { http2, taken, end, endSessions } = createLimitedHttp2(handler, limits, () => connections);
  readInTurns(http1, turns);
  const serveHttp1 = http1.listeners("connection") as ((socket: Socket) => void)[];
  const serveHttp2 = (socket: Socket) => {
    if (socket.destroyed) return;
    // An HTTP/1.1 client that has ended its side still gets its answer; an HTTP/2 connection is over then.
    socket.allowHalfOpen = false;
    const frames = framesInTurns(socket, turns);
    countData(socket, () => frames.dataTaken());
    // Emitted within the call below.
    http2.once("session", (session) => {
      taken(session, socket, frames);
      if (!http1.listening) end(session);
    });
    http2.emit("connection", frames.stream);
  };
  http1.removeAllListeners("connection");
  const keep = (socket: Socket) => {
    for (const set of [sockets, undecided]) set.add(socket);
    socket.on("close", () => sockets.delete(socket) && undecided.delete(socket));
  };
  http1.on("connection", (socket: Socket) => {
    keep(socket);
    peek(socket, limits.sniffMs, isHttp2, (isHttp2) => {
      if (isHttp2)
        return turns(callerNetwork(socket.remoteAddress), () => undecided.delete(socket) && serveHttp2(socket));
      undecided.delete(socket);
      for (const serve of serveHttp1) serve.call(http1, socket);
    });
  });

  const { log } = options;
  const handshake = tls && createHandshakes(http1, { ...tls, limitMs: limits.sniffMs, turns, log });
  const secure: Secure = (socket, done) => {
    keep(socket);
    handshake?.(socket, (...secured) => undecided.delete(socket) && done(...secured));
  };
  const connections = guardConnections(http1, limits, { ...options, secure: handshake && secure });
  http1.on("connection", turns.accepted); // whichever protocol it uses

  farewells.set(http1, endSessions);
  const close = http1.close.bind(http1);
  http1.close = (callback) => {
    endSessions();
    setTimeout(() => {
      for (const socket of undecided) socket.destroy();
    }, LAST_SNIFF_MS).unref();
    // A kept-alive connection that is busy now is closed when it becomes idle (`readInTurns`).
    return close(callback);
  };
  http1.closeAllConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
}

const farewells = new WeakMap<Server, () => void>();

/**
 * Tells the connected HTTP/2 clients to go elsewhere (GOAWAY), while the server goes on: requests that have begun are
 * finished. A client that connects again is served until the server closes; otherwise it would connect again and again.
 */
export const announceClose = (server: Server): void => farewells.get(server)?.();

/** Answers 400 to a request without exactly one valid host, and 421 to a stranger's request for a host that is not allowed. */
function forHost(handler: Handler, { checkHost, knowsPeer }: OnePortOptions): Handler {
  return (request, response) => {
    response.setHeader("x-content-type-options", "nosniff");
    const refuse = (status: number, why: string) => {
      request.resume();
      response.writeHead(status, { "content-type": "text/plain" }).end(`Host: ${why}\n`);
    };
    const problem = hostProblem(request);
    if (problem !== undefined) return refuse(400, `${problem}.`);
    const refusal = checkHost?.(request);
    if (refusal !== undefined && !knowsPeer?.(request)) return refuse(421, refusal);
    return handler(request, response);
  };
}

/** Answers 503 to a request for which there is no memory, and counts the others as long as work is done for them. */
function forMemory(handler: Handler): Handler {
  return (request, response) => {
    if (!isRefused(request)) return whileWorking(request, () => handler(request, response));
    // gRPC-Web and Connect clients take a 503 for UNAVAILABLE.
    response.writeHead(503, { "content-type": "text/plain", "retry-after": "1" });
    response.end(`${TOO_MANY_UNDER_WAY}\n`);
  };
}

/** Node announces the limit to HTTP/2 clients, but accepts up to 64 KiB from those that ignore it. */
function limitHeaders(handler: Handler, maxBytes: number): Handler {
  return (request, response) => {
    if (request.httpVersionMajor !== 2) return handler(request, response);
    // RFC 9113 section 6.5.2: each field counts 32 bytes more.
    const bytes = request.rawHeaders.reduce((sum, text) => sum + text.length + 16, 0);
    if (bytes <= maxBytes) return handler(request, response);
    response.writeHead(431).end();
  };
}
