/** Deadlines of calls, and retries until then. */
import { MongoError, MongoNetworkError, MongoNetworkTimeoutError } from "mongodb";
import type { EngineContext } from "../open.ts";
import { type CallOptions, Unavailable } from "../port.ts";

/** The time of a call without a deadline, in milliseconds. */
const DEFAULT_TIMEOUT_MS = 30_000;
/** A call ends this part of its time before its deadline, MARGIN_MS at most: the caller still gets the answer. */
const MARGIN = 0.1;
const MARGIN_MS = 500;
/** The longest pause after a failure, and after losing a race for a document. */
const FAILED_MS = 256;
const LOST_MS = 16;

/**
 * Time limits of calls of the driver, in milliseconds. If a connection is closed just before the driver writes to it, as
 * happens when a primary is lost, the driver waits for that socket forever (7.8, `Connection.writeCommand`). A repeatable
 * call is soon tried again. A write is tried again only when the driver can't be working on it any more, because its
 * attempts must follow one another in their session: by the driver's own limits a command and its one retry are over
 * after 18 s, and a write is two commands at most.
 */
export const TIMEOUT_MS = { repeatable: 6_000, write: 40_000 };

/** How long other reads wait for a read, in milliseconds: well beyond what a read normally takes. */
const PATIENCE_MS = 500;

/** Who waits for a read. */
export interface Awaiting {
  /** Its time is over, or its caller has left. */
  readonly isOver: boolean;
  /** How much of its time is left, in milliseconds. */
  remaining(): number;
}

/** A call of the port: how long it waits, and what can be said about its outcome if it is over before its answer. */
export interface Call extends Awaiting {
  /** Set when a write of the call is sent: from then on it may have happened. */
  inDoubt: boolean;
  failure: unknown;
}

/** Runs a call of the port within its deadline, unless the store is closed. The signal says that nobody waits. */
export type Run = <R>(
  options: CallOptions | undefined,
  work: (call: Call) => Promise<R>,
  signal?: AbortSignal,
) => Promise<R>;

export type Timing = Pick<EngineContext, "clock" | "random" | "sleep">;

/** Rejects with `Unavailable` when the time is over before `work` has answered. A signal that aborts makes the call over. */
export function withDeadline<R>(
  { deadline }: Pick<CallOptions, "deadline">,
  clock: EngineContext["clock"],
  work: (call: Call) => Promise<R>,
  signal?: AbortSignal,
) {
  const left = deadline === undefined ? DEFAULT_TIMEOUT_MS : deadline - clock();
  if (left <= 0) return Promise.reject(new Unavailable(false, new Error("the deadline had passed at the start")));
  const ends = clock() + left;
  const call = {
    /** Checks the clock, because a process that was suspended may resume other work before its timers. */
    get isOver() {
      return over || signal?.aborted === true || clock() >= ends;
    },
    remaining: () => ends - clock(),
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
 * Rejects with a `MongoError` when the driver has lost the call or its connection, so that the call is tried again. A
 * number is in milliseconds.
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
 * An error of the system, such as EPIPE. The driver passes it on as it is when a connection is closed just before it
 * writes to it (7.8, `Connection.writeCommand`).
 */
const isOfSystem = (error: unknown): error is Error =>
  error instanceof Error &&
  !(error instanceof MongoError) &&
  /^E(?!RR_)/.test(String((error as { code?: unknown }).code));

/** Resolves when the work is over, or after PATIENCE_MS, so that others don't wait for what may be lost. */
export async function withPatience(work: Promise<void>, onImpatience = () => {}): Promise<void> {
  const { promise: long, resolve } = Promise.withResolvers<void>();
  const timer = setInterval(() => {
    resolve();
    onImpatience();
  }, PATIENCE_MS);
  await Promise.race([work.finally(() => clearInterval(timer)), long]);
}

/** When a read ends that has no answer. */
export interface ReadLimits {
  /** How long the server may take, in milliseconds: as long as anybody waits, but no longer than the driver's call is waited for. */
  maxTimeMS(): number;
  readonly signal: AbortSignal;
}

export const nobodyWaits = () => new MongoError("nobody waits for the answer any more");

/**
 * Runs a read for those who wait for it. It is ended when all of them have left, but not while it is as young as reads
 * normally are: ending it costs the driver its connection, and nobody shall cost it many by leaving.
 * Resolves like `withPatience`.
 */
export function whileAwaited(by: readonly Awaiting[], read: (limits: ReadLimits) => Promise<void>): Promise<void> {
  const left = new AbortController();
  const remaining = () => by.reduce((most, { isOver, remaining }) => (isOver ? most : Math.max(most, remaining())), 1);
  const limits = { maxTimeMS: () => Math.min(TIMEOUT_MS.repeatable, Math.ceil(remaining())), signal: left.signal };
  return withPatience(read(limits), () => {
    if (by.every(({ isOver }) => isOver)) left.abort(nobodyWaits());
  });
}

/** Waits a random time that grows with each round, so that racing processes separate. */
export const backOff = (round: number, why: "failed" | "lost", { random, sleep }: Timing): Promise<void> =>
  sleep(random() * Math.min(2 ** round, why === "failed" ? FAILED_MS : LOST_MS));

/**
 * Retries while the database fails, until the call's time is over. Which of its errors are transient can't be known for
 * sure; a bug of ours is no `MongoError`.
 */
export async function retryUntilDeadline<R>(
  call: Omit<Call, "remaining">,
  timing: Timing,
  attempt: () => Promise<R>,
): Promise<R> {
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
