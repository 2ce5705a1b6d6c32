/**
 * HTTP/1.1 and HTTP/2 on one port, with or without TLS. Without TLS, clients use HTTP/2 by prior knowledge ("h2c", RFC 9113
 * section 3.3); with TLS, ALPN (RFC 7301) has agreed on one of the two before.
 */
import { createServer as createHttp1, type Server } from "node:http";
import {
  createServer as createHttp2,
  createSecureServer,
  type Http2SecureServer,
  type ServerHttp2Session,
} from "node:http2";
import { Server as NetServer, type Socket } from "node:net";
import { type ServerTls, secureOptions } from "../tls/certificates.ts";
import { DroppingResponse, LingeringResponse } from "./answers.ts";
import { type Connections, createConnections } from "./connections.ts";
import type { OnePortLimits } from "./limits.ts";
import { acceptWaiting } from "./listen.ts";
import { behindAnswers, refusePlainly } from "./refusals.ts";
import { type Handler, type RequestOptions, takeRequests } from "./requests.ts";
import { watchSession } from "./sessions.ts";

export interface OnePortOptions extends RequestOptions {
  /** By default there is no TLS. */
  readonly tls?: ServerTls | undefined;
}

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

/** By its first byte (RFC 8446, 5.1). */
const isHandshake = (head: Buffer): boolean => head[0] === 22;

/** Its connections, and whether it closes. */
type Port = Connections & { isClosing: boolean };
const ports = new WeakMap<Server, Port>();

/**
 * A server that hands each connection to HTTP/1.1 or HTTP/2. Both call the same handler, HTTP/2 by the compatibility API. It is
 * closed by `closePort`.
 *
 * Connections, requests and unread answers are bounded. A connection that breaks off never causes an uncaught error.
 */
export function createOnePortServer(
  handler: Handler,
  limits: OnePortLimits,
  { tls, ...options }: OnePortOptions = {},
): Server {
  const secured = tls && secureOptions(tls, options.log);
  const port: Port = { ...createConnections(limits, secured?.proves), isClosing: false };

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
  takeRequests(server as Server, http2 as Server, port, handler, limits, options);
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (server.listenerCount("clientError") === 1) behindAnswers(socket, () => refusePlainly(error, socket));
  });
  http2.on("session", (session: ServerHttp2Session) => {
    const connection = port.find(session.socket);
    if (!connection) return session.destroy();
    connection.session = session;
    watchSession(session, limits, connection.end);
    if (port.isClosing) session.close();
  });

  const http1Listeners = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    socket.on("error", ignore);
    if (!port.admit(socket)) return void socket.destroy();
    const serveAsBefore = () => http1Listeners.forEach((listen) => void listen.call(server, socket));
    if (secured)
      return peek(socket, limits.sniffMs, isHandshake, (is) => {
        if (is) return serveAsBefore();
        const error = new Error("plain HTTP on a port with TLS");
        server.emit("clientError", Object.assign(error, { code: "ERR_SSL_HTTP_REQUEST" }), socket); // as Node names it
      });
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
 * Looks at the first bytes of a connection before anything else reads it. Passes what was read to `judge` until it returns a
 * value, puts the bytes back, and calls `decided` with that value, once. A connection that ends before, or does not get there
 * in `limitMs` milliseconds, is closed.
 */
function peek(
  socket: Socket,
  limitMs: number,
  judge: (head: Buffer) => boolean | undefined,
  decided: (is: boolean) => void,
): void {
  let head: Buffer = Buffer.alloc(0);
  const drop = () => socket.destroy();
  const timer = setTimeout(drop, limitMs);
  const stop = () => clearTimeout(timer);
  const read = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    head = Buffer.concat([head, chunk]);
    const found = judge(head);
    if (found === undefined) return;
    stop();
    socket.off("readable", read).off("error", drop).off("end", drop).off("close", stop);
    socket.unshift(head);
    decided(found);
  };
  socket.on("readable", read).on("error", drop).on("end", drop).on("close", stop);
}

/** While a server closes, how often connections that have become idle are closed, in milliseconds. */
const IDLE_CHECK_MS = 50;

/**
 * Tells clients to go elsewhere while the server goes on: those of HTTP/2 at once (GOAWAY), those of HTTP/1.1 with the last
 * answer on their connection. Requests that have begun are finished. A client that connects again is served until the server
 * closes; otherwise it would connect again and again.
 */
export function announceClose(server: Server): void {
  ports.get(server)?.announceEnd();
  ports.get(server)?.goAway();
}

/** Ends all connections at once. */
export const cutOff = (server: Server): void => ports.get(server)?.endAll();

/**
 * Accepts no more connections, and resolves when the requests under way are answered and all connections are closed; what
 * remains after `graceMs` is cut off. `onClosing` is called once no new connection is accepted.
 */
export async function closePort(server: Server, graceMs: number, onClosing: () => void = () => {}): Promise<void> {
  const port = ports.get(server);
  if (port) port.isClosing = true;
  port?.announceEnd();
  const { promise, resolve } = Promise.withResolvers<void>();
  const late = setTimeout(cutOff, graceMs, server);
  await acceptWaiting(server);
  // Not that of an HTTP server, which would first end connections whose last answer is still being written.
  NetServer.prototype.close.call(server, () => resolve());
  port?.goAway();
  const idle = setInterval(() => port?.endIdle(), IDLE_CHECK_MS);
  onClosing();
  await promise;
  clearTimeout(late);
  clearInterval(idle);
}
