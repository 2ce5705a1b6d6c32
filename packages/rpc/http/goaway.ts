/** Closes an HTTP/2 connection without losing a request (RFC 9113 section 6.8). */
import type { Http2Session } from "node:http2";
import type { Writable } from "node:stream";

/** A client that has not answered a ping by then gets the last GOAWAY all the same; gRPC's servers wait as long. */
const ROUND_TRIPS_MS = 5_000;

/**
 * GOAWAY on stream 0 with NO_ERROR and the highest possible last stream: the client should send no new requests, and those
 * already in flight will be answered.
 */
const NOTICE = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);

const told = new WeakSet<Http2Session>();

/**
 * Ends a session with two GOAWAY frames. The first rejects no request. The reply to a ping sent behind it arrives after the
 * last request that the client sent before it read the GOAWAY. The second GOAWAY then names that request, and the connection
 * ends when all are answered. With a single GOAWAY, requests in flight would be dropped, and only some clients send those
 * again.
 *
 * Node can't send the first: after its own GOAWAY it rejects later requests, whichever stream the frame names. So the frame
 * is written to `wire`, the stream below the session. That must be a JavaScript stream, for to such a stream node writes
 * whole frames, at once. A ping before it makes sure that the server's SETTINGS, which must come first, have been sent.
 */
export function sayGoodbye(session: Http2Session, wire: Writable): void {
  if (told.has(session)) return;
  told.add(session);
  const close = () => session.close();
  const late = setTimeout(close, ROUND_TRIPS_MS);
  session.once("close", () => clearTimeout(late));
  const afterRoundTrip = (next: () => void) => {
    if (session.closed || session.destroyed) return;
    if (!session.ping((error) => error || next())) close();
  };
  afterRoundTrip(() => {
    if (session.closed || session.destroyed) return;
    wire.write(NOTICE);
    afterRoundTrip(close);
  });
}
