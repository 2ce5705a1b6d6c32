/** Ends an answer so that nobody takes what there is of it for the whole. */
import type { ServerResponse } from "node:http";
import { constants, type Http2ServerResponse } from "node:http2";
import type { PassThrough } from "node:stream";

/**
 * To be called before the output is piped into the response. What is returned sends what was written and the last words, and
 * then cuts the answer off: HTTP/1.1 without the last chunk, HTTP/2 by a reset of the stream (RFC 9112, 8; RFC 9113, 8.1).
 */
export function breaksOff(output: PassThrough, response: ServerResponse): (last: string) => void {
  const piped = new Promise<unknown>((resolve) => response.once("pipe", resolve));
  return async (last) => {
    await piped;
    await emptied(output);
    response.write(last, () => cut(response));
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

function cut(response: ServerResponse | (ServerResponse & Http2ServerResponse)): void {
  if ("stream" in response) response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  else if (response.req.httpVersion === "1.0") response.socket?.resetAndDestroy();
  else response.socket?.destroySoon();
}
