/** Reads the bodies of requests that wait for their turn. */
import type { IncomingMessage } from "node:http";
import type { ServerHttp2Stream } from "node:http2";

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
