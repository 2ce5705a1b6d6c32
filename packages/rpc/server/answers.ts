/** Answers that wait until their client takes them. */
import type { ServerResponse } from "node:http";

export interface AnswerLimits {
  /** Milliseconds in which a client takes something of what waits for it. */
  readonly writeMs: number;
  /** Bytes that wait in memory, of all answers together. */
  readonly waitingBytes: number;
}

/** Whoever takes answers: one connection. */
export interface Taker {
  /** Closes the connection. Nothing of its answers is kept. */
  giveUp(why: string): void;
  /** Grows when the client takes something, be it a part of one write. */
  taken(): number;
  /** Its bytes don't count: it takes its answers, or is given up in time. */
  readonly isPeer: boolean;
}

export interface Answers {
  /** Counts what is written to a response until it is taken. */
  follow(taker: Taker, response: ServerResponse): void;
  /** The connection is closed: nothing waits any more. */
  forget(taker: Taker): void;
  /** Bytes that wait now. */
  waiting(): number;
}

/** What is counted of one taker. */
interface Answered {
  bytes: number;
  /** Of answers of which something waits, or has. */
  readonly stops: Set<() => void>;
  /** Nothing of it counts any more. */
  isForgotten: boolean;
}

/**
 * Bounds what waits. A client that takes nothing for `writeMs` is given up, whether it doesn't read or, on HTTP/2, opens no
 * window; when more than `waitingBytes` wait in all, so is the one with the most. Streams of HTTP/2 count together: as long as
 * something of one is taken, the others may wait.
 */
export function createAnswers({ writeMs, waitingBytes }: AnswerLimits): Answers {
  const takers = new Map<Taker, Answered>();
  let total = 0;

  function follow(taker: Taker, response: ServerResponse): void {
    const own = answersOf(taker);
    const weight = taker.isPeer ? 0 : 1;
    let waiting = 0;
    let timer: NodeJS.Timeout | undefined;
    let takenBefore = 0;
    let over = false;
    let isWatched = false;
    const left = () => (over || own.isForgotten || response.writableFinished ? 0 : response.writableLength);
    const measure = () => {
      const now = left();
      if (now === waiting && now === 0) return; // almost always: the system took all of it at once
      if (now < waiting || now === 0) {
        clearTimeout(timer);
        timer = undefined;
      }
      own.bytes += weight * (now - waiting);
      total += weight * (now - waiting);
      waiting = now;
      if (now === 0 || timer) return;
      if (!isWatched) watch();
      takenBefore = taker.taken();
      timer = setTimeout(look, writeMs);
    };
    const watch = () => {
      isWatched = true;
      own.stops.add(stop);
      response.on("drain", measure).once("finish", stop);
    };
    const look = () => {
      timer = undefined;
      if (left() < waiting || taker.taken() > takenBefore) measure();
      else taker.giveUp(`nothing was taken of an answer for ${writeMs} ms`);
    };
    const stop = () => {
      over = true;
      measure();
      if (isWatched) own.stops.delete(stop);
    };
    const measured =
      <R>(write: (...args: never[]) => R) =>
      (...args: never[]): R => {
        if (waiting > 0) measure();
        const result = write.apply(response, args);
        measure();
        if (total > waitingBytes) giveUpLargest();
        return result;
      };
    response.write = measured(response.write);
    response.end = measured(response.end);
    response.on("close", stop);
  }

  function answersOf(taker: Taker): Answered {
    const known = takers.get(taker);
    if (known) return known;
    const own = { bytes: 0, stops: new Set<() => void>(), isForgotten: false };
    takers.set(taker, own);
    return own;
  }

  function giveUpLargest(): void {
    const [largest] = [...takers].reduce((a, b) => (b[1].bytes > a[1].bytes ? b : a));
    forget(largest);
    largest.giveUp("too many bytes of answers wait, most of them here");
  }

  function forget(taker: Taker): void {
    const own = takers.get(taker);
    if (!own) return;
    own.isForgotten = true;
    for (const stop of own.stops) stop();
    takers.delete(taker);
  }

  return { follow, forget, waiting: () => total };
}
