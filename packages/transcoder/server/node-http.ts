/** What node's server leaves to its users: what its parser gives up on, odd requests, and whether there is anybody to answer. */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import type { FastifyInstance } from "fastify";
import { HttpError } from "../errors/http-error.ts";
import type { SizeLimits } from "../request/head.ts";

/** The code of an error that is not of the parser. */
export const NO_PROXY = "ERR_NO_PROXY";

/** Why the parser gave up. Timeouts end requests that arrive too slowly. */
export function parserError(
  error: { readonly code?: string; readonly rawPacket?: unknown },
  { urlBytes }: SizeLimits,
): HttpError {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return targetLength(error.rawPacket) > urlBytes
        ? new HttpError("URI_TOO_LONG", "The request target is too long.")
        : new HttpError("HEADERS_TOO_LARGE", "The header fields are too large.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new HttpError("REQUEST_TIMEOUT", "The request did not arrive in time. Nothing was done.");
    case NO_PROXY:
      return new HttpError("ROUTE_NOT_FOUND", "This is not a proxy.");
    case "ERR_SSL_HTTP_REQUEST":
      return new HttpError("INVALID_HEADER", "This port takes https alone: the address must begin with https://.");
    case "HPE_INVALID_METHOD":
      return new HttpError(
        "INVALID_HEADER",
        "The request is not well-formed HTTP/1.1, or its method is not registered.",
      );
    default:
      return new HttpError("INVALID_HEADER", "The request is not well-formed HTTP/1.1.");
  }
}

/** How much of a request target a packet begins with. */
const targetLength = (packet: unknown): number =>
  Buffer.isBuffer(packet) ? (/^[A-Z-]{1,20} ([^ \r\n]*)/.exec(packet.toString("latin1"))?.[1]?.length ?? 0) : 0;

/**
 * Takes what node's server would drop without an answer, or with one of its own: CONNECT, which asks for a proxy, and an
 * Expect that is not 100-continue, which may be ignored (RFC 9110, 10.1.1). A server that takes them by itself is left alone.
 */
export function takeOddRequests(app: FastifyInstance): void {
  if (app.server.listenerCount("connect") > 0) return;
  // As what can't be read, so that whoever keeps refusals behind the answers to earlier requests does so with this one.
  app.server.on("connect", ({ socket }) => {
    const error = Object.assign(new Error("CONNECT asks for a proxy"), { code: NO_PROXY });
    if (!app.server.emit("clientError", error, socket)) socket.destroy();
  });
  app.server.on("checkExpectation", (request, response) => app.server.emit("request", request, response));
}

/** Fastify takes a request that names neither length nor type nor chunks for one without a body. HTTP/2 has no chunks. */
export function announceBody({ httpVersionMajor, headers }: IncomingMessage): void {
  if (httpVersionMajor === 2 && headers["content-length"] === undefined) headers["transfer-encoding"] = "chunked";
}

interface Message {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** How long a client may take to read a response and close its side, in milliseconds. */
const LINGER_MS = 5000;

/**
 * Writes a response to a bare socket, or to a stream of HTTP/2, and closes it. What the client still sends is read and dropped
 * first, for a connection that is closed before is reset, and then the client may lose the response (RFC 9112, 9.6). Node
 * reports each part of that as an error of its own: only the first one is answered.
 */
export function writeResponse(socket: Duplex, { status, headers, body }: Message): void {
  if (socket.writableEnded) return;
  if (!socket.writable) return void socket.destroy();
  const fields = { ...headers, "content-length": String(Buffer.byteLength(body)) };
  if (isStream(socket)) {
    socket.respond({ ...fields, ":status": status });
    socket.end(body);
    socket.close(); // when the body is written
  } else {
    const lines = Object.entries({ ...fields, connection: "close" }).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`);
  }
  // Of a request that was too slow nothing more is read: what has been refused must not be carried out after all.
  if (status === 408) socket.pause();
  else socket.resume();
  const close = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once("close", () => clearTimeout(close));
}

const isStream = (socket: Duplex): socket is ServerHttp2Stream => "respond" in socket;

/** Whether there is nobody any more to answer: a listener to "close" would not be called. HTTP/2's API does not show it itself. */
export function isGone(response: Pick<ServerResponse, "closed" | "destroyed">): boolean {
  const { stream } = response as Partial<Pick<Http2ServerResponse, "stream">>;
  return response.closed || response.destroyed || stream?.destroyed === true;
}
