/** Finds out whether the client of an HTTP/2 connection is still there, while it waits for answers. */
import type { Http2Session } from "node:http2";
import type { Socket } from "node:net";
import { bytesTaken } from "./connection.ts";

/** Silent intervals in a row that are tolerated: one may come from a pause of either process. */
const UNANSWERED = 2;

/**
 * Sends a PING to the client of a session every `everyMs` milliseconds while it has requests open. Calls `lost` after three
 * such intervals in a row in which the client has sent nothing and taken no bytes that wait for it. Without pings, a
 * connection that was cut off looks idle. Returns a function that tells whether any requests are open.
 */
export function keepAlive(session: Http2Session, socket: Socket, everyMs: number, lost: () => void): () => boolean {
  let open = 0;
  const closed = () => void open--;
  session.on("stream", (stream) => {
    open++;
    stream.on("close", closed);
  });
  let seen = signs(socket);
  let unanswered = 0;
  const timer = setInterval(() => {
    const now = signs(socket);
    const isSilent = open > 0 && now === seen;
    seen = now;
    unanswered = isSilent ? unanswered + 1 : 0;
    if (unanswered > UNANSWERED) lost();
    else if (open > 0 && !session.destroyed) session.ping(() => {});
  }, everyMs);
  session.on("close", () => clearInterval(timer));
  return () => open > 0;
}

/** Bytes received, plus bytes taken while more wait. If none wait, the kernel has taken all, with or without a client. */
const signs = (socket: Socket): number => socket.bytesRead + (socket.writableLength > 0 ? bytesTaken(socket) : 0);
