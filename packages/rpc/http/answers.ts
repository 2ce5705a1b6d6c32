/** Answers that wait until their client takes them. */
import type { ServerResponse } from "node:http";
import { type Clock, realTime } from "@petstore/runtime/clock";

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
  /** Bytes that were written to its connection, of answers that may be over, and wait there until it takes them. */
  pending(): number;
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
  /** What answers that are over have left in the connection, as if it were one answer. */
  rest: Answer | undefined;
  /** Nothing of it counts any more. */
  isForgotten: boolean;
}

/** A record and no closures: there is one for each stream that is open. */
interface Answer {
  readonly response: Pick<ServerResponse, "writableFinished" | "writableLength">;
  readonly taker: Taker;
  readonly own: Answered;
  /** 0 where its bytes don't count. */
  readonly weight: number;
  /** Bytes, when it was last looked at. */
  waiting: number;
  /** While something waits: what its taker had taken before, and until when it has to take more. */
  takenBefore: number;
  dueAt: number;
  isOver: boolean;
}

const restOf = (taker: Taker): Answer["response"] => ({
  writableFinished: false,
  get writableLength() {
    return taker.pending();
  },
});

type Write = (...args: unknown[]) => unknown;

/**
 * Bounds what waits. A client that takes nothing for `writeMs` is given up, whether it doesn't read or, on HTTP/2, opens no
 * window; when more than `waitingBytes` wait in all, so is the one with the most. Streams of HTTP/2 count together: as long as
 * something of one is taken, the others may wait. What of theirs has gone into the connection waits there though they are reset.
 */
export function createAnswers({ writeMs, waitingBytes }: AnswerLimits, clock: Clock = realTime.clock): Answers {
  const takers = new Map<Taker, Answered>();
  /** Of which something waits, or did; the first is the first that is due. */
  const watched = new Set<Answer>();
  let timer: NodeJS.Timeout | undefined;
  let total = 0;

  function follow(taker: Taker, response: ServerResponse): void {
    const answer = answerOf(taker, response);
    const { write, end } = response as { readonly write: Write; readonly end: Write };
    response.write = (...args: unknown[]) => measured(answer, write, args) as never;
    response.end = (...args: unknown[]) => measured(answer, end, args) as never;
    response.on("drain", () => measure(answer));
    response.on("close", () => {
      answer.isOver = true;
      measure(answer);
      if (taker.pending() === 0) return;
      answer.own.rest ??= answerOf(taker, restOf(taker));
      measure(answer.own.rest);
    });
  }

  function answerOf(taker: Taker, response: Answer["response"]): Answer {
    const [own, weight] = [answersOf(taker), taker.isPeer ? 0 : 1];
    return { response, taker, own, weight, waiting: 0, takenBefore: 0, dueAt: 0, isOver: false };
  }

  function measured(answer: Answer, write: Write, args: unknown[]): unknown {
    if (answer.waiting > 0) measure(answer);
    const result = write.apply(answer.response, args);
    measure(answer);
    if (total > waitingBytes && waiting() > waitingBytes) giveUpLargest();
    return result;
  }

  const left = ({ isOver, response }: Answer): number =>
    isOver || response.writableFinished ? 0 : response.writableLength;

  function measure(answer: Answer): void {
    const { taker, own, weight, waiting } = answer;
    const now = own.isForgotten ? 0 : left(answer);
    if (now === waiting && now === 0) return; // almost always: the system took all of it at once
    if (now < waiting) watched.delete(answer);
    if (watched.size === 0) stopLooking();
    answer.waiting = now;
    if (own.isForgotten) return;
    own.bytes += weight * (now - waiting);
    total += weight * (now - waiting);
    if (now === 0 || watched.has(answer)) return;
    answer.takenBefore = taker.taken();
    answer.dueAt = clock() + writeMs;
    watched.add(answer);
    timer ??= setTimeout(look, writeMs).unref();
  }

  function look(): void {
    timer = undefined;
    const now = clock();
    for (const answer of watched) {
      const { taker, dueAt } = answer;
      if (dueAt > now) {
        stopLooking(); // one that was set for an answer of this round
        timer = setTimeout(look, dueAt - now).unref();
        return;
      }
      watched.delete(answer);
      if (left(answer) < answer.waiting || taker.taken() > answer.takenBefore) measure(answer);
      else taker.giveUp(`nothing was taken of an answer for ${writeMs} ms`);
    }
  }

  function stopLooking(): void {
    clearTimeout(timer);
    timer = undefined;
  }

  function waiting(): number {
    for (const answer of watched) measure(answer);
    return total;
  }

  function answersOf(taker: Taker): Answered {
    const known = takers.get(taker);
    if (known) return known;
    const own: Answered = { bytes: 0, rest: undefined, isForgotten: false };
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
    total -= own.bytes;
    takers.delete(taker);
  }

  return { follow, forget, waiting };
}
