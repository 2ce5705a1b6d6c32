/** Ends an answer so that nobody takes what there is of it for the whole. */
import type { ServerResponse } from "node:http";
import { constants, type Http2ServerResponse } from "node:http2";
import type { PassThrough } from "node:stream";
import { LINGER_MS } from "./node-http.ts";

type Response = ServerResponse | (ServerResponse & Http2ServerResponse);

/**
 * To be called before the output is piped into the response. What is returned sends what was written and the last words, and
 * then cuts the answer off: HTTP/1.1 without the last chunk, HTTP/2 by a reset of the stream (RFC 9112, 8; RFC 9113, 8.1). A
 * caller who does not read is not waited for longer than `LINGER_MS`.
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
