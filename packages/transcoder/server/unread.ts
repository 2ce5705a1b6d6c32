/** Answers that nobody reads while the request is still being sent. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { HttpError } from "../errors/http-error.ts";

/** Most bytes of answers that may be unread while the request still arrives. */
const UNREAD_BYTES = 1024 * 1024;

const UNREAD = new HttpError(
  "RESOURCE_EXHAUSTED",
  "The answers are not read while the request is sent, and more than 1 MiB of them is waiting.",
  {},
  429,
);

/**
 * Many clients of HTTP/1.1 read no answer before they have sent all of their request. A service that waits for its answers to
 * be read before it reads on would wait for ever. So while the request arrives answers are kept, up to a limit; then the call
 * ends. Clients of HTTP/2 read and write at once.
 */
export function unreadLimit(
  output: Duplex,
  request: IncomingMessage,
  signal: AbortSignal,
  end: (error: HttpError) => void,
): () => Promise<unknown> {
  return async () => {
    // A service in the same process might leave the connection no time to take what it can.
    await turn();
    if (!output.writableNeedDrain) return;
    if (request.httpVersionMajor === 2 || request.complete) return once(output, "drain", { signal });
    if (output.readableLength + output.writableLength > UNREAD_BYTES) end(UNREAD);
    signal.throwIfAborted();
  };
}
