/**
 * Cases that Node's server leaves to its users: requests that are not HTTP, odd ones, callers that have left, and answers that
 * end before their request, or break off.
 */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import { constants, type Http2ServerResponse, type ServerHttp2Stream } from "node:http2";
import type { Duplex, PassThrough } from "node:stream";
import type { FastifyInstance } from "fastify";
import { HttpError } from "../errors/http-error.ts";
import type { SizeLimits } from "../request/http.ts";

/** The code of an error that the parser does not have. */
export const NO_PROXY = "ERR_NO_PROXY";

/** The error for a request that the parser gave up on, or that arrived too slowly. */
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

/** The length of the request target, as far as the packet has it. */
const targetLength = (packet: unknown): number =>
  Buffer.isBuffer(packet) ? (/^[A-Z-]{1,20} ([^ \r\n]*)/.exec(packet.toString("latin1"))?.[1]?.length ?? 0) : 0;

/**
 * Answers what Node would drop, or answer in its own way: CONNECT, which asks for a proxy, is refused; an Expect other than
 * 100-continue is ignored (RFC 9110, 10.1.1). A server that already listens for CONNECT is left alone.
 */
export function takeOddRequests(app: FastifyInstance): void {
  if (app.server.listenerCount("connect") > 0) return;
  // The same event as for what is not HTTP: a host that sends refusals only behind earlier answers does so here, too.
  app.server.on("connect", ({ socket }) => {
    const error = Object.assign(new Error("CONNECT asks for a proxy"), { code: NO_PROXY });
    if (!app.server.emit("clientError", error, socket)) socket.destroy();
  });
  app.server.on("checkExpectation", (request, response) => app.server.emit("request", request, response));
}

interface Message {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Milliseconds that a client has to read the response and close its side. */
const LINGER_MS = 5000;

/**
 * Writes a response to a socket or a stream of HTTP/2 that has no request, and closes it. What the client still sends is read
 * and dropped: if the connection were closed at once, the client could lose the response (RFC 9112, 9.6). Node may report
 * several errors for one connection. Only the first is answered.
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
  // A request that was too slow is read no further: else it could be complete later, and be carried out.
  if (status === 408) socket.pause();
  else socket.resume();
  const close = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once("close", () => clearTimeout(close));
}

const isStream = (socket: Duplex): socket is ServerHttp2Stream => "respond" in socket;

/** Whether the caller has left already, so that no event "close" will come. In HTTP/2 only the stream shows it. */
export function isGone(response: Pick<ServerResponse, "closed" | "destroyed">): boolean {
  const { stream } = response as Partial<Pick<Http2ServerResponse, "stream">>;
  return response.closed || response.destroyed || stream?.destroyed === true;
}

type Response = ServerResponse | (ServerResponse & Http2ServerResponse);

/**
 * Lets the rest of a request go when its answer has been sent. Over HTTP/1.1 it is read and dropped, for a connection that is
 * closed before is reset, and then the caller may lose the answer (RFC 9112, 9.6). HTTP/2 has a frame for it (RFC 9113, 8.1).
 * While the server closes, the connection is closed then: Node closes those that rest when a close begins, and no others.
 */
export function dropLeftover(request: IncomingMessage, response: Response, isClosing: () => boolean) {
  if ("stream" in response) {
    const { stream } = response;
    stream.once("finish", () => {
      if (!request.complete) stream.close(constants.NGHTTP2_NO_ERROR);
    });
    return;
  }
  response.once("finish", () => {
    const { socket } = request;
    // A request of Fastify's `inject` has no connection.
    if (request.complete || !("destroySoon" in socket)) return;
    request.unpipe(); // from a reader that may not take any more
    request.resume();
    const close = setTimeout(() => socket.destroy(), LINGER_MS).unref();
    request.once("close", () => clearTimeout(close));
    request.once("end", () => {
      clearTimeout(close);
      if (isClosing()) socket.destroySoon();
    });
  });
}

/**
 * Ends an answer so that nobody takes what there is of it for the whole. To be called before the output is piped into the
 * response. What is returned sends what was written and the last words, and then cuts the answer off: HTTP/1.1 without the
 * last chunk, HTTP/2 by a reset of the stream (RFC 9112, 8; RFC 9113, 8.1). A caller who does not read is not waited for
 * longer than `LINGER_MS`.
 */
export function breaksOff(output: PassThrough, response: Response): (last: string) => void {
  const piped = new Promise<unknown>((resolve) => response.once("pipe", resolve));
  return async (last) => {
    const timer = setTimeout(() => cut(response, true), LINGER_MS).unref();
    response.once("close", () => clearTimeout(timer));
    await piped;
    await emptied(output);
    response.write(last, () => cut(response, false));
  };
}

/** Resolves when all that was written to an output has been read from it. */
const emptied = (output: PassThrough): Promise<void> =>
  new Promise((resolve) => {
    const check = () => {
      if (output.readableLength + output.writableLength === 0) resolve();
    };
    // A piece counts as long as it is passed on.
    output.on("data", () => setImmediate(check));
    check();
  });

function cut(response: Response, isOver: boolean): void {
  if ("stream" in response) return void response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  const { socket, req } = response;
  if (isOver) socket?.destroy();
  else if (req.httpVersion === "1.0") socket?.resetAndDestroy();
  else if (req.complete) socket?.destroySoon();
  else {
    // A connection that is closed while the caller sends is reset, and the caller may lose what was written.
    req.unpipe();
    req.resume();
    socket?.end();
  }
}
