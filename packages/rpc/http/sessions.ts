/** How long a connection of HTTP/2 lasts, and how long its requests may take to arrive. Over HTTP/1.1 Node ends both. */
import type { IncomingMessage } from "node:http";
import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { OnePortLimits } from "./limits.ts";

/** Pings in a row that may go unanswered: one may be delayed by a pause of either process. */
const UNANSWERED = 2;

/** Ends an HTTP/2 connection whose client has gone, or has been idle for `idleMs`. `end` closes the connection below the session. */
export function watchSession(session: ServerHttp2Session, limits: OnePortLimits, end: () => void): void {
  let open = 0;
  session.on("stream", (stream: ServerHttp2Stream) => {
    open++;
    stream.on("close", () => open--);
  });
  // Without pings, a connection that was cut off looks idle. This ends it when too many are unanswered, and when its session is
  // over: Node then waits for the client to take what is written and to close its side.
  let unanswered = 0;
  const pings = setInterval(() => {
    if (session.destroyed || unanswered > UNANSWERED) return end();
    if (open === 0) return;
    unanswered++;
    session.ping((error) => {
      if (!error) unanswered = 0;
    });
  }, limits.keepAliveMs).unref();
  // Idle is what has received nothing for that long, or for up to twice as long. (Node 26 keeps a session that has a time limit
  // of its own, `session.setTimeout`, for that long after its end.)
  let seen = -1;
  const looks = setInterval(() => {
    if (session.destroyed) return;
    const { bytesRead } = session.socket;
    if (bytesRead === seen && open === 0) session.close();
    seen = bytesRead;
  }, limits.idleMs).unref();
  session.on("error", () => {});
  session.on("close", () => {
    clearInterval(pings);
    clearInterval(looks);
  });
}

/** Streams whose request goes on arriving while both sides are there, so that its time limit does not apply. */
const keptOpen = new WeakSet<ServerHttp2Stream>();
export const keepOpen = (stream: ServerHttp2Stream): void => void keptOpen.add(stream);

/**
 * Calls `refuse`, which answers, if a request has not arrived after `ms`; nothing of what came is read any more. Where its
 * answer has begun the stream is reset instead, and where gRPC is spoken: its clients make UNKNOWN of a 408, and CANCELLED of
 * a reset.
 */
export function refuseLate(
  request: IncomingMessage,
  stream: ServerHttp2Stream,
  ms: number,
  refuse: (error: Error) => void,
): void {
  if (stream.endAfterHeaders) return; // it has arrived, and "end" is emitted only when it is read
  const late = () => {
    if (keptOpen.has(stream)) return;
    if (stream.headersSent || request.headers["content-type"]?.startsWith("application/grpc"))
      return stream.close(constants.NGHTTP2_CANCEL);
    // Named as Node names it for HTTP/1.1.
    const error = Object.assign(new Error("the request did not arrive in time"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
    request.destroy(error); // else the end of the stream looks like the end of the body
    refuse(error);
  };
  const timer = setTimeout(late, ms);
  const arrived = () => clearTimeout(timer);
  stream.once("end", arrived).once("close", arrived);
}
