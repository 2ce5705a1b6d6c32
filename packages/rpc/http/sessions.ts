/** The HTTP/2 connections of a port: how long each may last, and how it ends. */
import type { Http2Session, ServerHttp2Session, ServerHttp2Stream } from "node:http2";

export interface SessionLimits {
  /** A connection is closed after this time without traffic, unless it waits for responses. */
  readonly idleMs: number;
  /** Interval of the pings to a client that waits for responses. */
  readonly keepAliveMs: number;
}

/** Pings in a row that may go unanswered: one may be delayed by a pause of either process. */
const UNANSWERED = 2;

export function createSessions(limits: SessionLimits) {
  const sessions = new Set<Http2Session>();

  /** `end` closes the connection below the session. */
  function add(session: ServerHttp2Session, end: () => void): void {
    sessions.add(session);
    const open = countStreams(session);
    const stops = [
      pingWhile(session, limits.keepAliveMs, () => open() > 0, end),
      endWhenIdle(session, limits.idleMs, open),
    ];
    session.on("error", () => {});
    session.on("close", () => {
      sessions.delete(session);
      for (const stop of stops) stop();
    });
  }

  return {
    add,
    /** Tells every client to go elsewhere (GOAWAY). Requests that have begun are answered; later ones are refused. */
    goAway(): void {
      for (const session of sessions) session.close();
    },
  };
}

/** Returns how many streams are open. */
function countStreams(session: ServerHttp2Session): () => number {
  let open = 0;
  session.on("stream", (stream: ServerHttp2Stream) => {
    open++;
    stream.on("close", () => open--);
  });
  return () => open;
}

/**
 * Without pings, a connection that was cut off looks idle. Ends it when too many are unanswered, and when its session is over:
 * Node then waits for the client to take what is written and to close its side.
 */
function pingWhile(session: Http2Session, everyMs: number, isWanted: () => boolean, end: () => void): () => void {
  let unanswered = 0;
  const timer = setInterval(() => {
    if (session.destroyed || unanswered > UNANSWERED) return end();
    if (!isWanted()) return;
    unanswered++;
    session.ping((error) => {
      if (!error) unanswered = 0;
    });
  }, everyMs).unref();
  return () => clearInterval(timer);
}

/**
 * Ends a session that has received nothing for `ms`, or for up to twice as long. (Node 26 keeps a session that has a time
 * limit of its own, `session.setTimeout`, for that long after its end.)
 */
function endWhenIdle(session: Http2Session, ms: number, open: () => number): () => void {
  let seen = -1;
  const timer = setInterval(() => {
    if (session.destroyed) return;
    const { bytesRead } = session.socket;
    if (bytesRead === seen && open() === 0) session.close();
    seen = bytesRead;
  }, ms).unref();
  return () => clearInterval(timer);
}
