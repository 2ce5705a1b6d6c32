/** Requests over HTTP/2 that do not arrive in time. Those of HTTP/1.1 are Node's to end (`requestTimeout`). */
import type { IncomingMessage } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";

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
