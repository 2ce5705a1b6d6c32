/** Looks at the first bytes of a connection before anything else reads it. */
import type { Socket } from "node:net";

/**
 * Passes what was read to `judge` until it returns a value, puts the bytes back, and calls `decided` with that value, once.
 * A connection that ends before, or does not get there in `limitMs` milliseconds, is closed.
 */
export function peek<T>(
  socket: Socket,
  limitMs: number,
  judge: (head: Buffer) => T | undefined,
  decided: (found: T) => void,
): void {
  let head: Buffer = Buffer.alloc(0);
  const drop = () => socket.destroy();
  const timer = setTimeout(drop, limitMs);
  const stop = () => clearTimeout(timer);
  const read = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    head = Buffer.concat([head, chunk]);
    const found = judge(head);
    if (found === undefined) return;
    stop();
    socket.off("readable", read).off("error", drop).off("end", drop).off("close", stop);
    socket.unshift(head);
    decided(found);
  };
  socket.on("readable", read).on("error", drop).on("end", drop).on("close", stop);
}
