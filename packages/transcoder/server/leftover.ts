/** What a caller still sends when it has its answer. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type Http2ServerResponse } from "node:http2";
import { LINGER_MS } from "./node-http.ts";

/**
 * Lets the rest of a request go when its answer has been sent. Over HTTP/1.1 it is read and dropped, for a connection that is
 * closed before is reset, and then the caller may lose the answer (RFC 9112, 9.6). HTTP/2 has a frame for it (RFC 9113, 8.1).
 */
export function dropLeftover(
  request: IncomingMessage,
  response: ServerResponse | (ServerResponse & Http2ServerResponse),
) {
  if ("stream" in response) {
    const { stream } = response;
    stream.once("finish", () => {
      if (!request.complete) stream.close(constants.NGHTTP2_NO_ERROR);
    });
    return;
  }
  response.once("finish", () => {
    if (request.complete) return;
    const { socket } = request;
    request.unpipe(); // from a reader that may not take any more
    request.resume();
    const close = setTimeout(() => socket.destroy(), LINGER_MS).unref();
    for (const event of ["end", "close"]) request.once(event, () => clearTimeout(close));
  });
}
