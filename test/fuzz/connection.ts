/** A raw connection to a port: sends bytes unchanged and keeps everything that comes back. */
import { connect } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Find } from "./find.ts";

/** How this side ends the connection: in order, or by breaking it off. */
export type End = "FIN" | "RST";

export interface Exchange {
  readonly received: Buffer;
  /** The connection was broken off, so that a part of the answers may be lost. */
  readonly isCut: boolean;
}

/** A connection that is open for so long will never be closed. Time is not judged otherwise. */
const FORGOTTEN_MS = 60_000;

/**
 * Sends the parts one after the other, each in a packet of its own, and resolves when the connection is closed. Breaks the
 * connection off after `enoughMs`, for answers that may go on as long as their caller is there.
 */
export async function exchange(
  port: number,
  parts: readonly Buffer[],
  end: End,
  enoughMs = FORGOTTEN_MS,
): Promise<Exchange> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const chunks: Buffer[] = [];
  let isCut = end === "RST";
  const { promise: closed, resolve, reject } = Promise.withResolvers<void>();
  socket.on("data", (chunk: Buffer) => void chunks.push(chunk));
  socket.on("error", () => {
    isCut = true;
  });
  socket.once("close", () => resolve());
  const forgotten = setTimeout(() => {
    isCut = true;
    socket.destroy();
    if (enoughMs === FORGOTTEN_MS) reject(new Find("a connection is never closed, though nothing more is to come"));
  }, enoughMs);
  try {
    for (const part of parts) {
      if (socket.destroyed) break;
      socket.write(part);
      if (parts.length > 1) await nextTurn();
    }
    if (end === "FIN") socket.end();
    else socket.write("", () => socket.resetAndDestroy());
    await closed;
  } finally {
    clearTimeout(forgotten);
  }
  return { received: Buffer.concat(chunks), isCut };
}

/** Cuts bytes into `count` parts of about the same length. */
export function cutInto(count: number, bytes: Buffer): Buffer[] {
  const size = Math.max(1, Math.ceil(bytes.length / Math.max(1, count)));
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) parts.push(bytes.subarray(at, at + size));
  return parts;
}
