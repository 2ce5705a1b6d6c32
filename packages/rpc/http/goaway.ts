/** The end of an HTTP/2 connection that costs no request (RFC 9113 section 6.8). */
import type { Http2Session } from "node:http2";
import type { Writable } from "node:stream";

/** A client that has not answered a ping by then is told the end all the same; gRPC's servers wait as long. */
const ROUND_TRIPS_MS = 5_000;

/**
 * GOAWAY on stream 0 without an error, and with the highest last stream there is: no new requests, please, and those that
 * are on their way will be answered.
 */
const NOTICE = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);

const told = new WeakSet<Http2Session>();

/**
 * Tells the client of a session twice that it ends. The first GOAWAY leaves out no request. A ping that was sent behind it
 * comes back behind the last request that the client has sent before it knew; the second GOAWAY then names that one, and
 * the connection ends when all are answered. With one GOAWAY alone, what is on its way would not be worked on, and only
 * some clients send that again.
 *
 * Node has no such notice: its own GOAWAY leaves out what comes later, whatever it names. So the frame is written to
 * `wire`, the stream that the session writes to, and that must be one of JavaScript, for then node writes whole frames,
 * at once. A ping before it makes sure that the server's SETTINGS, which have to be first, are out.
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
