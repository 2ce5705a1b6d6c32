/** How long a call may go on, and trying again until then. */
import { MongoError, MongoNetworkError, MongoNetworkTimeoutError } from "mongodb";
import type { EngineContext } from "../engine/context.ts";
import { type CallOptions, Unavailable } from "../port.ts";

/** The time of a call without a deadline. */
const DEFAULT_TIMEOUT_MS = 30_000;
/** The caller hears of it so much before it gives up by itself: this part of its time, and never more than that. */
const MARGIN = 0.1;
const MARGIN_MS = 500;
/** The longest pause after a failure, and after losing a race for a document. */
const FAILED_MS = 256;
const LOST_MS = 16;

/**
 * The driver loses a call whose connection is closed just before it writes to it, as happens when a primary is lost, and
 * then waits for that socket for ever (7.8, `Connection.writeCommand`). What may be made twice is soon made again. A write
 * is when the driver can't still be at it, for its attempts must follow one another in their session: by the driver's own
 * limits a command and its one retry are over after 18 s, and a write is two commands at most.
 */
export const TIMEOUT_MS = { repeatable: 6_000, write: 40_000 };

/** A read is waited for by other reads for so long, which is well beyond what one takes while all is well. */
const PATIENCE_MS = 500;

/** A call of the port: its time, and what can be said when that is over. */
export interface Call {
  readonly isOver: boolean;
  /** Set when a write of the call is sent: from then on it may have happened. */
  inDoubt: boolean;
  /** What went wrong last. */
  failure: unknown;
}

export type Timing = Pick<EngineContext, "clock" | "random" | "sleep">;

/** Rejects with `Unavailable` when the time is over before `work` has answered. */
export function withDeadline<R>(
  { deadline }: CallOptions,
  clock: EngineContext["clock"],
  work: (call: Call) => Promise<R>,
) {
  const left = deadline === undefined ? DEFAULT_TIMEOUT_MS : deadline - clock();
  if (left <= 0) return Promise.reject(new Unavailable(false, new Error("the deadline had passed at the start")));
  const ends = clock() + left;
  const call = {
    /** By the clock, for a process that was stopped may go on with anything before its timers. */
    get isOver() {
      return over || clock() >= ends;
    },
    inDoubt: false,
    failure: undefined as unknown,
  };
  let over = false;
  const { promise, resolve, reject } = Promise.withResolvers<R>();
  const timer = setTimeout(
    () => {
      over = true;
      reject(new Unavailable(call.inDoubt, call.failure ?? new Error("the database did not answer in time")));
    },
    Math.max(1, left - Math.min(left * MARGIN, MARGIN_MS)),
  );
  work(call)
    .then(resolve, reject)
    .finally(() => clearTimeout(timer));
  return promise;
}

/**
 * Rejects with a `MongoError` when the driver has lost the call or its connection, so that it is tried again. A number is in
 * milliseconds.
 */
export async function withTimeout<R>(kind: keyof typeof TIMEOUT_MS | number, answer: Promise<R>): Promise<R> {
  const { promise: lost, reject } = Promise.withResolvers<never>();
  const limit = typeof kind === "number" ? kind : TIMEOUT_MS[kind];
  const timer = setTimeout(() => reject(new MongoNetworkTimeoutError(`no answer within ${limit} ms`)), limit);
  try {
    return await Promise.race([answer, lost]);
  } catch (error) {
    throw isOfSystem(error) ? new MongoNetworkError(error.message, { cause: error }) : error;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Which the driver passes on as they are when a connection is closed just before it writes to it (7.8,
 * `Connection.writeCommand`), such as EPIPE.
 */
const isOfSystem = (error: unknown): error is Error =>
  error instanceof Error &&
  !(error instanceof MongoError) &&
  /^E(?!RR_)/.test(String((error as { code?: unknown }).code));

/**
 * Resolves when the read is over, or when it has taken so long that others must not wait for it: it may be lost, or ask a
 * server that is.
 */
export async function withPatience(read: Promise<void>): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, PATIENCE_MS);
  await Promise.race([read, over]);
  clearTimeout(timer);
}

/** Waits a random time that grows with each round, so that racing processes separate. */
export const backOff = (round: number, why: "failed" | "lost", { random, sleep }: Timing): Promise<void> =>
  sleep(random() * Math.min(2 ** round, why === "failed" ? FAILED_MS : LOST_MS));

/**
 * Tries again as long as the database is what fails. Which of its errors will pass can't be told for sure, and a mistake
 * of ours is no `MongoError`.
 */
export async function retryUntilDeadline<R>(call: Call, timing: Timing, attempt: () => Promise<R>): Promise<R> {
  for (let round = 0; ; round++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof MongoError)) throw error;
      call.failure = error;
    }
    if (call.isOver) throw new Unavailable(call.inDoubt, call.failure);
    await backOff(round, "failed", timing);
  }
}
