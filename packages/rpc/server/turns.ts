/** Shares out the turns of the event loop, so that nobody waits for all that somebody else has asked for. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2Stream } from "node:http2";
import type { Handler } from "./one-port.ts";

/**
 * Begins a piece of work when it is its turn: soon, but never at once. `caller` is for whom it is done. What waits already
 * is not begun twice.
 */
export type Turns = (caller: unknown, begin: () => unknown) => void;

/**
 * Pieces of work in one turn of the event loop, which reads what has come meanwhile before the next one. With 8 a call cost
 * twice the processor time at 50 callers, for what is begun in one turn is sent on together; with 64 it costs the same as
 * without turns.
 */
export const WORK_PER_TURN = 64;

/** Callers take turns; what one caller asks for is begun in its order. */
export function createTurns(nextTurn: (turn: () => void) => void = setImmediate): Turns {
  // Both keep their order, and lose their first at no cost, however long they are.
  const waiting = new Map<unknown, Set<() => unknown>>();
  let isDue = false;
  const schedule = () => {
    if (isDue || waiting.size === 0) return;
    isDue = true;
    nextTurn(turn);
  };
  const turn = () => {
    let left = WORK_PER_TURN;
    try {
      // What is asked for meanwhile comes last, in this turn if there is room.
      for (const [caller, pieces] of waiting) {
        if (left-- === 0) break;
        waiting.delete(caller);
        const [begin] = pieces;
        if (!begin) continue;
        pieces.delete(begin);
        if (pieces.size > 0) waiting.set(caller, pieces);
        begin();
      }
    } finally {
      isDue = false;
      schedule();
    }
  };
  return (caller, begin) => {
    const pieces = waiting.get(caller) ?? new Set();
    pieces.add(begin);
    waiting.set(caller, pieces);
    schedule();
  };
}

/** Handles each HTTP/2 request when it is its address' turn, or never if it was reset by then. */
export const inTurns =
  (turns: Turns, handler: Handler) =>
  (request: IncomingMessage & { readonly stream: Http2Stream }, response: ServerResponse): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    turns(request.socket.remoteAddress, () => resolve(request.stream.closed ? undefined : handler(request, response)));
    return promise;
  };
