/** The time limit for an answer of HTTP/1.1 of which nothing is taken. That of HTTP/2 is in `limitUnread`. */
import type { ServerResponse } from "node:http";
import { type Clock, realTime } from "@petstore/runtime/clock";

/**
 * How often the timer of the socket runs out within the limit. Where a part of a write was taken, Node starts the timer over,
 * but only when it runs out: with one long timer the limit could be twice as long.
 */
const LOOKS = 5;

/** Calls `giveUp` when bytes of the answer have waited for `ms`, or up to a fifth longer, and none of them was taken. */
export function whenStalled(
  response: ServerResponse,
  ms: number,
  giveUp: () => void,
  clock: Clock = realTime.clock,
): void {
  const step = ms / LOOKS;
  let quiet = 0;
  let written = 0;
  let lookedAt = 0;
  response.setTimeout(step, () => {
    const { socket } = response;
    if (!socket || response.writableLength === 0) return; // the next write starts the timer
    const before = { written, lookedAt };
    written = socket.bytesWritten - socket.writableLength;
    lookedAt = clock();
    const isTaken = written !== before.written || lookedAt - before.lookedAt >= 2 * step - 1;
    quiet = isTaken ? 1 : quiet + 1;
    if (quiet >= LOOKS) giveUp();
    else socket.setTimeout(step);
  });
}
