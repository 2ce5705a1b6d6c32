/**
 * HTTP/1.1 and HTTP/2 on one port, without TLS ("h2c", RFC 9113 section 3.3: by prior knowledge) or with it, where ALPN has
 * agreed on one of them (RFC 7301) before the client speaks it.
 */
import { createServer as createHttp1, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { hostProblem } from "connect-transcoder/request/host";
import type { HostCheck } from "./allowed-hosts.ts";
import { callerNetwork } from "./caller-network.ts";
import {
  type ConnectionLimits,
  countData,
  defaultConnectionLimits,
  type GuardOptions,
  guardConnections,
} from "./connections.ts";
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
  /** Which hosts requests may name, of strangers; by default any. */
  readonly checkHost?: HostCheck | undefined;
}

export interface OnePortLimits extends ConnectionLimits {
  /** Until a connection has sent the bytes that tell its protocol. */
  readonly sniffMs: number;
  /** Until a request has arrived completely; on HTTP/2 it is reset then, on HTTP/1.1 answered 408. */
  readonly requestMs: number;
  /** A connection without any traffic is closed after it, unless it waits for answers. */
  readonly idleMs: number;
  /** Where answers are waited for over HTTP/2, the client is asked so often whether it is there. */
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
 * Gives a promise or nothing. It resolves when nothing is done for the request any more, whatever became of its connection,
 * and never rejects.
 */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** Once the server closes, a connection that was accepted before has so long to say what it is. */
const LAST_SNIFF_MS = 1_000;

/** The first bytes of HTTP/2's preface, and of no HTTP/1.1 method (RFC 9113 section 3.4). */
const PREFACE = Buffer.from("PRI");

const isHttp2 = (head: Buffer): boolean | undefined =>
  head.length < PREFACE.length && PREFACE.indexOf(head) === 0 ? undefined : head.indexOf(PREFACE) === 0;

/**
 * A server that looks at the first bytes of each connection and hands it to HTTP/1.1 or HTTP/2. It is used like a
 * `node:http` server, and its `close` is graceful for both: what runs and what is on its way is finished, HTTP/2 peers are
 * told to go elsewhere (GOAWAY, twice), idle connections end. `closeAllConnections` cuts off what remains.
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
      requireHostHeader: false, // judged with the rest of the Host
    },
    limitHeaders(forMemory(forHost(handler, options)), limits.headerBytes),
  );
  openOnePort(http1, limits, options);
  // As what can't be read. Node would close the connection, and with it what was asked for before CONNECT came behind it.
  http1.on("connect", ({ socket }) => http1.emit("clientError", new Error("CONNECT asks for a proxy"), socket));
  http1.prependListener("request", (_, response) => {
    if (!http1.listening) response.setHeader("connection", "close");
  });
  return http1;
}

/**
 * Makes such a server of one for HTTP/1.1, whoever made it. Its requests of HTTP/2 go to the same listener, by the
 * compatibility API. To be called before others listen to it.
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
    // At once.
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
  http1.on("connection", turns.accepted); // whatever it speaks

  farewells.set(http1, endSessions);
  const close = http1.close.bind(http1);
  http1.close = (callback) => {
    endSessions();
    setTimeout(() => {
      for (const socket of undecided) socket.destroy();
    }, LAST_SNIFF_MS).unref();
    // A kept-alive connection that is busy now is closed when it falls idle (`readInTurns`).
    return close(callback);
  };
  http1.closeAllConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
}

const farewells = new WeakMap<Server, () => void>();

/**
 * Tells the HTTP/2 clients that are connected to go elsewhere, while the server goes on: what they have begun is finished.
 * Who comes here all the same is served until the server closes, or would come again and again.
 */
export const announceClose = (server: Server): void => farewells.get(server)?.();

/** Answers 400 to a request that is addressed to nobody, or to two, and 421 to one that is addressed to somebody else. */
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

/** Does nothing for a request for which there is no memory, and counts the others as long as something is done for them. */
function forMemory(handler: Handler): Handler {
  return (request, response) => {
    if (!isRefused(request)) return whileWorking(request, () => handler(request, response));
    // Clients of gRPC-Web and Connect take it for UNAVAILABLE.
    response.writeHead(503, { "content-type": "text/plain", "retry-after": "1" });
    response.end(`${TOO_MANY_UNDER_WAY}\n`);
  };
}

/** Node tells HTTP/2 clients of the limit, but accepts up to 64 KiB from those that don't care. */
function limitHeaders(handler: Handler, maxBytes: number): Handler {
  return (request, response) => {
    if (request.httpVersionMajor !== 2) return handler(request, response);
    // RFC 9113 section 6.5.2: each field counts 32 bytes more.
    const bytes = request.rawHeaders.reduce((sum, text) => sum + text.length + 16, 0);
    if (bytes <= maxBytes) return handler(request, response);
    response.writeHead(431).end();
  };
}
