/** Begins requests in turns of the event loop, so that what is given up meanwhile is never begun. */
import type { IncomingMessage } from "node:http";
import type { ServerHttp2Stream } from "node:http2";

type Begin = () => void;

/** One in the queue. It is empty once that was begun or given up. */
interface Place {
  begin: Begin | undefined;
}

/** So much begins in one turn. */
const AT_ONCE = 64;

/**
 * What comes alone begins at once. What comes while other work has just begun waits until the event loop has read from all
 * connections again; then at most `atOnce` begin in each of its turns, in order. Returns what gives it up: then it never begins,
 * and nothing is kept of it.
 */
export function createTurns(atOnce = AT_ONCE): (begin: Begin) => () => void {
  let isBusy = false;
  // Arrays that last a turn or few. Sets, from which what is given up is deleted, cost a fifth of a read.
  let arriving: Place[] = [];
  let due: Place[] = [];
  let next = 0;

  function take(): void {
    for (let begun = 0; begun < atOnce && next < due.length; next++) if (beginAt(due[next])) begun++;
    if (next === due.length) [due, arriving, next] = [arriving, [], 0];
    isBusy = due.length > 0;
    if (isBusy) setImmediate(take);
  }

  return (begin) => {
    if (!isBusy) {
      isBusy = true;
      setImmediate(take);
      begin();
      return () => {};
    }
    const place: Place = { begin };
    arriving.push(place);
    return () => (place.begin = undefined);
  };
}

/** Returns whether there was something to begin. */
function beginAt(place: Place | undefined): boolean {
  const begin = place?.begin;
  if (!place || !begin) return false;
  place.begin = undefined;
  begin();
  return true;
}

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
