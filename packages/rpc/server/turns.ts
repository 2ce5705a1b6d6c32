/** Shares out the turns of the event loop, so that nobody waits for all that somebody else has asked for. */

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Http2Stream } from "node:http2";

/** Begins a piece of work when it is its turn: soon, but never at once. `caller` is for whom it is done. */
export type Turns = (caller: unknown, begin: () => unknown) => void;

/** Pieces of work in one turn of the event loop, which reads what has come meanwhile before the next one. */
export const WORK_PER_TURN = 8;

/** Callers take turns; what one caller asks for is begun in its order. */
export function createTurns(nextTurn: (turn: () => void) => void = setImmediate): Turns {
  // Both keep their order, and lose their first at no cost, however long they are.
  const waiting = new Map<unknown, Set<{ readonly begin: () => unknown }>>();
  let isDue = false;
  const schedule = () => {
    if (isDue || waiting.size === 0) return;
    isDue = true;
    nextTurn(turn);
  };
  const turn = () => {
    isDue = false;
    const now: (() => unknown)[] = [];
    for (const [caller, pieces] of waiting) {
      if (now.length === WORK_PER_TURN) break;
      const [first] = pieces;
      waiting.delete(caller);
      if (!first) continue;
      now.push(first.begin);
      pieces.delete(first);
      if (pieces.size > 0) waiting.set(caller, pieces); // behind the others
    }
    schedule();
    for (const begin of now) begin();
  };
  return (caller, begin) => {
    const pieces = waiting.get(caller) ?? new Set();
    pieces.add({ begin });
    waiting.set(caller, pieces);
    schedule();
  };
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** Handles each request when it is its address' turn, or never if its client has gone by then. */
export const inTurns =
  (turns: Turns, handler: Handler) =>
  (request: IncomingMessage & { readonly stream?: Http2Stream }, response: ServerResponse): Promise<void> => {
    const isGone = () => request.stream?.closed ?? response.destroyed;
    const { promise, resolve } = Promise.withResolvers<void>();
    turns(request.socket.remoteAddress, () => resolve(isGone() ? undefined : handler(request, response)));
    return promise;
  };

/** Lets the listeners that a server has for requests handle them in turns. */
export function beginInTurns(server: Server): void {
  const listeners = server.listeners("request") as Handler[];
  const serve = inTurns(createTurns(), (request, response) => {
    for (const listener of listeners) void listener.call(server, request, response);
  });
  server.removeAllListeners("request").on("request", (request, response) => void serve(request, response));
}
