/** Bounds the bytes of responses that wait until their client reads them. */
import type { ServerResponse } from "node:http";
import { type Clock, realTime } from "@petstore/runtime/clock";

export interface AnswerLimits {
  /** Milliseconds within which a client must take some of the bytes that wait for it. */
  readonly writeMs: number;
  /** Bytes that may wait in memory, for all responses together. */
  readonly waitingBytes: number;
}

/** One connection, as the receiver of responses. */
export interface Taker {
  /** Closes the connection and drops the bytes that wait for it. */
  giveUp(why: string): void;
  /** A counter that grows when the client takes bytes, even a part of one write. */
  taken(): number;
  /** Bytes that were written to the connection and wait there for the client, even when their response is over. */
  pending(): number;
  /** One of the system's own processes. Its bytes don't count: it takes its responses, or is given up in time. */
  readonly isPeer: boolean;
}

export interface Answers {
  /** Counts the bytes written to a response until the client has taken them. */
  follow(taker: Taker, response: ServerResponse): void;
  /** To be called when the connection is closed: nothing waits for it any more. */
  forget(taker: Taker): void;
  /** Bytes that wait now. */
  waiting(): number;
}

/** What is counted for one connection. */
interface Answered {
  bytes: number;
  /** Bytes that finished responses have left in the connection, counted as one more response. */
  rest: Answer | undefined;
  /** The connection is closed: none of its bytes count. */
  isForgotten: boolean;
}

/** A plain record without closures, for there is one per open stream. */
interface Answer {
  readonly response: Pick<ServerResponse, "writableFinished" | "writableLength">;
  readonly taker: Taker;
  readonly own: Answered;
  /** 0 if its bytes don't count, else 1. */
  readonly weight: number;
  /** Bytes that waited when it was last measured. */
  waiting: number;
  /** While bytes wait: what the connection had taken when the period began, and when it must have taken more. */
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
 * Bounds the bytes that wait. A client that takes nothing for `writeMs` loses its connection, whether it doesn't read or, on
 * HTTP/2, opens no flow-control window. When more than `waitingBytes` wait in all, the connection with the most is closed.
 * The HTTP/2 streams of a connection count together: as long as the client takes bytes of one, the others may wait. Bytes
 * that a stream has passed to the connection wait there, and count, even after the stream was reset.
 */
export function createAnswers({ writeMs, waitingBytes }: AnswerLimits, clock: Clock = realTime.clock): Answers {
  const takers = new Map<Taker, Answered>();
  /** Responses for which bytes waited when last measured; the first is due first. */
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
    if (now === waiting && now === 0) return; // the usual case: the kernel took everything at once
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
        stopLooking(); // `measure` may have set a timer in this loop
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
