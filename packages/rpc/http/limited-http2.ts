/** The HTTP/2 side of a port: what one connection may do, and how it ends. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, createServer as createHttp2, type Http2Session, type Http2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Connections } from "./connections.ts";
import type { FramesInTurns } from "./frames-in-turns.ts";
import { sayGoodbye } from "./goaway.ts";
import { mendAuthority } from "./host.ts";
import { keepAlive } from "./keep-alive.ts";
import { isKeptOpen } from "./kept-open.ts";
import type { Handler, OnePortLimits } from "./one-port.ts";
import { isRefused } from "./request-memory.ts";

export function createLimitedHttp2(handler: Handler, limits: OnePortLimits, connections: () => Connections) {
  const settings = { maxConcurrentStreams: limits.concurrentStreams, maxHeaderListSize: limits.headerBytes };
  const framesOf = new WeakMap<Http2Session, FramesInTurns>();
  // The compatibility API: its requests and responses stand in for those of HTTP/1.1.
  const serve = limitWork(untilAnswered(handler), limits, framesOf, connections);
  const http2 = createHttp2({ settings, ...floodLimits }, serve as never);
  // The handler answers these requests, too.
  for (const odd of ["connect", "checkExpectation"]) http2.on(odd, serve);
  // For a stream that was reset together with its request, node's own answer throws, and nothing would catch that.
  http2.on("checkContinue", (request, response) => {
    if (!request.stream.destroyed && !request.stream.closed) response.writeContinue();
    serve(request as never, response as never);
  });
  const sessions = new Set<Http2Session>();
  http2.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
  });
  const late = (stream: Http2Stream) => void (isKeptOpen(stream) || stream.close(constants.NGHTTP2_CANCEL));
  http2.on("stream", (stream) => {
    if (stream.endAfterHeaders) return; // it has arrived, and "end" is emitted only when it is read
    const timer = setTimeout(late, limits.requestMs, stream);
    const arrived = () => {
      clearTimeout(timer);
      stream.off("end", arrived).off("close", arrived);
    };
    stream.on("end", arrived).on("close", arrived);
  });
  const end = (session: Http2Session) => {
    const frames = framesOf.get(session);
    if (frames) sayGoodbye(session, frames.stream);
  };
  const endSessions = () => sessions.forEach(end);
  const taken = (session: Http2Session, socket: Socket, frames: FramesInTurns) => {
    framesOf.set(session, frames);
    closeSoonAfter(session, socket);
    const isWaiting = keepAlive(session, socket, limits.keepAliveMs, () => socket.destroy());
    whenSilent(session, socket, limits.idleMs, () => {
      if (isWaiting()) return false;
      end(session);
      setTimeout(() => socket.destroy(), limits.sniffMs).unref();
      return true;
    });
  };
  return { http2, taken, end, endSessions };
}

/**
 * Calls `end` after a client has sent nothing for `ms`, or for up to twice as long, until `end` returns true. The session's own
 * `setTimeout` can't be used: Node 26 leaves its timer running when a session is over, and keeps all objects of the connection
 * until the timer fires.
 */
function whenSilent(session: Http2Session, socket: Socket, ms: number, end: () => boolean): void {
  let seen = socket.bytesRead;
  const timer = setTimeout(() => {
    const isSilent = socket.bytesRead === seen;
    seen = socket.bytesRead;
    if (!isSilent || !end()) timer.refresh();
  }, ms).unref();
  session.on("close", () => clearTimeout(timer));
}

/** How long to wait for a client that has taken everything to close its side, in milliseconds. */
const LINGER_MS = 1_000;

/**
 * A destroyed session has no time limit any more: it would wait for ever for its client to take what is written and to
 * close. Node calls `destroy` itself when the client has broken the protocol or has sent GOAWAY.
 */
function closeSoonAfter(session: Http2Session, socket: Socket): void {
  const destroy = session.destroy.bind(session);
  // A client that takes bytes of its responses gets more time, see `createAnswers`.
  const linger = () => void (socket.writableLength > 0 ? later() : socket.destroy());
  const later = () => void setTimeout(linger, LINGER_MS).unref();
  session.destroy = (...args) => {
    destroy(...args);
    if (!socket.destroyed) later();
  };
}

/**
 * What one HTTP/2 connection may do before node closes it. Besides these, nghttp2 bounds the frames of one header block
 * (CONTINUATION) and the acknowledgements that wait to be sent (SETTINGS, PING).
 */
const floodLimits = {
  /** Frames that break the protocol but don't end the connection by themselves. */
  maxSessionInvalidFrames: 100,
  /** Megabytes that the connection's own state may take. */
  maxSessionMemory: 10,
  /** Streams that may be reset at once, and then each second. A peer resets all of its calls that run out of time. */
  streamResetBurst: 1000,
  streamResetRate: 33,
};

/** Streams of one connection that may be refused in a row: as many as may be reset at once. */
const REFUSALS = floodLimits.streamResetBurst;

/**
 * Refuses streams with REFUSED_STREAM, so that they may be sent again (RFC 9113 section 8.7). Closes a connection that goes
 * on after `REFUSALS` of its streams in a row were refused.
 */
function createRefusals() {
  const refused = new WeakMap<Http2Session, number>();
  return {
    refuse(session: Http2Session, stream: Http2Stream): void {
      const count = (refused.get(session) ?? 0) + 1;
      refused.set(session, count);
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
      if (count !== REFUSALS || session.destroyed) return;
      session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      setImmediate(() => session.destroy()); // once that was sent
    },
    taken: (session: Http2Session) => void refused.delete(session),
  };
}

/**
 * Bounds the work for one HTTP/2 connection. HTTP/2 no longer counts a stream that its client has reset, but its handler
 * runs to its end. So handlers are counted: once twice as many run as there may be streams, new streams are refused.
 * Strangers' requests take turns. When one begins, everything that arrived together with it has been read; if that has reset
 * it, nothing is done for it.
 */
function limitWork(
  handler: ReturnType<typeof untilAnswered>,
  limits: OnePortLimits,
  framesOf: WeakMap<Http2Session, FramesInTurns>,
  connections: () => Connections,
) {
  const refusals = createRefusals();
  const running = new WeakMap<Http2Session, number>();
  const trusted = new WeakSet<Http2Session>();
  return (request: IncomingMessage & { readonly stream: Http2Stream }, response: ServerResponse) => {
    const { stream } = request;
    const { session } = stream;
    const frames = session && framesOf.get(session);
    // Node's own `socket` is a stand-in that knows nothing of the peer.
    if (frames) Object.defineProperty(request, "socket", { value: frames.socket });
    mendAuthority(request);
    connections().follow(request, response);
    // Node does not report the close of a HEAD response that the handler has not ended, and what is kept for it would stay.
    if (request.method === "HEAD") stream.once("close", () => void response.end());
    if (!frames || stream.closed) return; // it was reset
    const isPeer = connections().isPeer(request);
    if (isPeer && !trusted.has(session)) {
      trusted.add(session);
      frames.trust();
      session.settings({ maxConcurrentStreams: limits.peerStreams });
    }
    const others = running.get(session) ?? 0;
    if (isRefused(request)) return frames.begin(() => refusals.refuse(session, stream));
    if (others >= 2 * (isPeer ? limits.peerStreams : limits.concurrentStreams)) return refusals.refuse(session, stream);
    refusals.taken(session);
    running.set(session, others + 1);
    const done = () => void running.set(session, (running.get(session) ?? 1) - 1);
    const begin = () => void (stream.closed ? done() : handler(request, response).then(done));
    if (isPeer) begin();
    else frames.begin(begin);
  };
}

/** The work of a handler that returns no promise ends when its response closes. */
const untilAnswered =
  (handler: Handler) =>
  (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const done = handler(request, response);
    return done instanceof Promise ? done : new Promise((resolve) => response.once("close", resolve));
  };
