/** Finds out whether the client of an HTTP/2 connection is still there, while it waits for answers. */
import type { Http2Session } from "node:http2";
import type { Socket } from "node:net";
import { bytesTaken } from "./connections.ts";

/** One may get lost to a pause of either process. */
const UNANSWERED = 2;

/**
 * Asks the client of a session (PING) as long as it has requests open, and calls `lost` when nothing has come from it since
 * it was asked twice, and it has taken nothing of what waits for it. A connection whose other side was cut off, and nobody
 * could tell, looks like one that is idle. Gives what tells whether any requests are open.
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

/** What has come, and what was taken while more waits: the system takes the rest, whoever is there. */
const signs = (socket: Socket): number => socket.bytesRead + (socket.writableLength > 0 ? bytesTaken(socket) : 0);
