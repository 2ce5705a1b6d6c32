/** HTTP/1.1 and HTTP/2 without TLS ("h2c", RFC 9113 section 3.3: by prior knowledge) on one port. */
import { createServer as createHttp1, type RequestListener, type Server } from "node:http";
import { constants, createServer as createHttp2, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";

export interface OnePortLimits {
  /** Until a connection has sent the bytes that tell its protocol. */
  readonly sniffMs: number;
  /** Until a request has arrived completely; on HTTP/2 it is reset then, on HTTP/1.1 answered 408. */
  readonly requestMs: number;
  /** A connection without any traffic is closed after it. */
  readonly idleMs: number;
  /** All header fields of one request together. */
  readonly headerBytes: number;
  /** Requests at a time on one HTTP/2 connection. A peer uses one connection, and may have many calls in flight. */
  readonly concurrentStreams: number;
}

export const defaultLimits: OnePortLimits = {
  sniffMs: 10_000,
  requestMs: 30_000,
  idleMs: 600_000,
  headerBytes: 16 * 1024,
  concurrentStreams: 1000,
};

/** The first bytes of HTTP/2's preface, and of no HTTP/1.1 method (RFC 9113 section 3.4). */
const PREFACE = Buffer.from("PRI");

/**
 * A server that looks at the first bytes of each connection and hands it to HTTP/1.1 or HTTP/2. It is used like a
 * `node:http` server, and its `close` is graceful for both: what runs is finished, HTTP/2 peers are told to go elsewhere
 * (GOAWAY), idle connections end. `closeAllConnections` cuts off what remains.
 */
export function createOnePortServer(handler: RequestListener, limits: OnePortLimits = defaultLimits): Server {
  const http1 = createHttp1(
    {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: Math.min(limits.sniffMs, limits.requestMs),
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: Math.min(1000, limits.requestMs),
    },
    handler,
  );
  http1.prependListener("request", (_request, response) => {
    if (!http1.listening) response.setHeader("connection", "close");
  });
  const { http2, closeSessions } = createLimitedHttp2(handler, limits);
  const sockets = new Set<Socket>();
  const undecided = new Set<Socket>();

  const serveHttp1 = http1.listeners("connection") as ((socket: Socket) => void)[];
  http1.removeAllListeners("connection");
  http1.on("connection", (socket: Socket) => {
    for (const set of [sockets, undecided]) set.add(socket);
    socket.once("close", () => sockets.delete(socket) && undecided.delete(socket));
    sniff(socket, limits.sniffMs, (isHttp2) => {
      undecided.delete(socket);
      if (!isHttp2) for (const serve of serveHttp1) serve.call(http1, socket);
      else {
        // An HTTP/1.1 client that has ended its side still gets its answer; an HTTP/2 connection is over then.
        socket.allowHalfOpen = false;
        http2.emit("connection", socket);
      }
    });
  });

  const close = http1.close.bind(http1);
  http1.close = (callback) => {
    closeSessions();
    for (const socket of undecided) socket.destroy();
    // A kept-alive connection that is busy now falls idle later.
    const sweep = setInterval(() => http1.closeIdleConnections(), 50);
    return close((error) => {
      clearInterval(sweep);
      callback?.(error);
    });
  };
  http1.closeAllConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  return http1;
}

/** Calls back once, when enough has been read to tell; what was read is put back. */
function sniff(socket: Socket, limitMs: number, decided: (isHttp2: boolean) => void): void {
  let head: Buffer = Buffer.alloc(0);
  const drop = () => socket.destroy();
  const timer = setTimeout(drop, limitMs);
  const stop = () => clearTimeout(timer);
  const read = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    head = Buffer.concat([head, chunk]);
    if (head.length < PREFACE.length && PREFACE.indexOf(head) === 0) return;
    stop();
    socket.off("readable", read).off("error", drop).off("end", drop).off("close", stop);
    socket.unshift(head);
    decided(head.indexOf(PREFACE) === 0);
  };
  socket.on("readable", read).on("error", drop).on("end", drop).on("close", stop);
}

function createLimitedHttp2(handler: RequestListener, limits: OnePortLimits) {
  const settings = { maxConcurrentStreams: limits.concurrentStreams, maxHeaderListSize: limits.headerBytes };
  // The compatibility API: its requests and responses stand in for those of HTTP/1.1.
  const http2 = createHttp2({ settings }, limitHeaders(handler, limits.headerBytes) as never);
  const sessions = new Set<ServerHttp2Session>();
  http2.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    session.setTimeout(limits.idleMs, () => {
      session.close();
      setTimeout(() => session.destroy(), limits.sniffMs).unref();
    });
  });
  http2.on("stream", (stream) => {
    const timer = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), limits.requestMs);
    const arrived = () => clearTimeout(timer);
    stream.once("end", arrived).once("close", arrived);
  });
  const closeSessions = () => {
    for (const session of sessions) session.close();
  };
  return { http2, closeSessions };
}

/** Node tells HTTP/2 clients of the limit, but accepts up to 64 KiB from those that don't care. */
function limitHeaders(handler: RequestListener, maxBytes: number): RequestListener {
  return (request, response) => {
    // RFC 9113 section 6.5.2: each field counts 32 bytes more.
    const bytes = request.rawHeaders.reduce((sum, text) => sum + text.length + 16, 0);
    if (bytes <= maxBytes) handler(request, response);
    else response.writeHead(431).end();
  };
}
