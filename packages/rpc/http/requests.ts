/**
 * Each request of a port: what is counted and checked before its handler begins, and when that is. `countAsStream`: what
 * is answered by a stream counts no longer with the others.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Logger } from "@petstore/runtime/log";
import { NO_PROXY } from "connect-transcoder/http";
import { continueWhenRead, whenClosed } from "./answers.ts";
import { type Connections, connectionOf, type Request } from "./connections.ts";
import { mendHost } from "./hosts.ts";
import type { OnePortLimits } from "./limits.ts";
import { createRequestBudget, holdRequest, OPEN_REQUESTS, releaseRequest, whileWorking } from "./request-budget.ts";
import { refuseLate } from "./sessions.ts";
import { limitUnread } from "./unread.ts";

/**
 * Returns a promise or nothing. The promise resolves when all work for the request has ended, whatever became of its
 * connection, and never rejects. It reads a body from the request, and not from the stream of it, unless a peer sent it.
 */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

export interface RequestOptions {
  /** Whether a request, and so its connection, comes from one of the system's own processes. By default none does. */
  readonly knowsPeer?: ((request: IncomingMessage) => boolean) | undefined;
  readonly log?: Logger | undefined;
}

/** Requests of one HTTP/1.1 connection that may wait for their answers. A client that sends more is cut off. */
const PIPELINED_REQUESTS = 10;

/**
 * Passes the requests of two servers, which may be the same, to the handler. What can't be read is a "clientError" of the first.
 * Requests and responses have an error listener all their life.
 */
export function takeRequests(
  server: Server,
  http2: Server,
  connections: Connections,
  handler: Handler,
  limits: OnePortLimits,
  { knowsPeer = () => false, log }: RequestOptions,
): void {
  const follow = limitUnread(limits, log);
  const budget = createRequestBudget(limits.requestBytes);
  const inTurn = createTurns();

  function serve(request: Request, response: ServerResponse): void {
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
    if (!connection.isPeer && knowsPeer(request)) connections.trust(connection, stream?.session);
    const hold = connection.isPeer ? undefined : holdRequest(budget, request, limits.bodyBytes);
    const taken = follow(response, connection, stream?.session as ServerHttp2Session | undefined);
    if (stream)
      refuseLate(request, stream, limits.requestMs, (error) => void server.emit("clientError", error, stream));
    let giveUp = () => {};
    whenClosed(request, response, () => {
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
    if (connection.isPeer || hold?.isRefused || (isUpload && !stream)) begin();
    else giveUp = inTurn(isUpload && stream ? readingAhead(request, stream, begin) : begin);
  }

  for (const each of new Set([server, http2])) {
    each.on("request", serve);
    // HTTP/2 requests that expect something, or ask for a tunnel, are requests like any other.
    each.on("checkContinue", (request: Request, response) => {
      continueWhenRead(request, response);
      serve(request, response);
    });
    // An expectation other than 100-continue may be ignored (RFC 9110, 10.1.1).
    each.on("checkExpectation", serve);
    each.on("connect", (request: Request, socket) => {
      if (request.stream) serve(request, socket as unknown as ServerResponse);
      // Answered like unreadable input. Node would close the connection and drop the requests that came before the CONNECT.
      else server.emit("clientError", Object.assign(new Error("CONNECT asks for a proxy"), { code: NO_PROXY }), socket);
    });
  }
}

const ignore = () => {};

/** Counts a response as a stream: streams have a limit of their own, so it no longer takes from what short requests share. */
export function countAsStream(request: Request, response: ServerResponse): void {
  releaseRequest(request);
  const end = connectionOf(request)?.beginStream();
  if (end) whenClosed(request, response, end);
}

/** One in the queue. It is empty once that was begun or given up. */
interface Place {
  begin: (() => void) | undefined;
}

/** So much begins in one turn. */
const AT_ONCE = 64;

/**
 * What comes alone begins at once. What comes while other work has just begun waits until the event loop has read from all
 * connections again; then at most `atOnce` begin in each of its turns, in order. Returns what gives it up: then it never begins,
 * and nothing is kept of it.
 */
export function createTurns(atOnce = AT_ONCE) {
  let isBusy = false;
  // Arrays that last a turn or few. Sets, from which what is given up is deleted, cost a fifth of a read.
  let arriving: Place[] = [];
  let due: Place[] = [];
  let next = 0;

  function take(): void {
    for (let begun = 0; begun < atOnce && next < due.length; next++) if (beginAt(due[next])) begun++;
    if (next === due.length) [due, arriving, next] = [arriving, [], 0];
    isBusy = due.length > 0;
    if (isBusy) setImmediate(take);
  }

  return (begin: () => void): (() => void) => {
    if (!isBusy) {
      isBusy = true;
      setImmediate(take);
      begin();
      return () => {};
    }
    const place: Place = { begin };
    arriving.push(place);
    return () => (place.begin = undefined);
  };
}

/** Returns whether there was something to begin. */
function beginAt(place: Place | undefined): boolean {
  const begin = place?.begin;
  if (!place || !begin) return false;
  place.begin = undefined;
  begin();
  return true;
}

/** Pieces of a body that may wait. Each takes some 400 bytes, however small it is. */
const FEW_PIECES = 64;

/**
 * Reads the body of a request into its buffer until `begin` is called, which is done here as soon as there are more pieces than
 * a few, or the buffer is full. Returns what begins the request in its turn.
 */
export function readingAhead(request: IncomingMessage, stream: ServerHttp2Stream, begin: () => void): () => void {
  let pieces = 0;
  let hasBegun = false;
  function beginOnce(): void {
    if (hasBegun) return;
    hasBegun = true;
    stream.off("data", count);
    begin();
  }
  function count(): void {
    if (++pieces === FEW_PIECES || stream.isPaused()) beginOnce();
  }
  request.read(0); // pauses the stream when its buffer is full
  stream.on("data", count);
  return beginOnce;
}
