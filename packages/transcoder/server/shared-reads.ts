/** Callers that ask for the same at the same time are answered by one call. */
import { type After, after } from "./after.ts";

/** Makes a call that ends at a moment (milliseconds since 1970), or when the signal aborts. */
export type MakeCall<A> = (deadline: number, signal: AbortSignal) => Promise<A>;

/** One caller's part in a call. */
export interface Share<A> {
  readonly answer: Promise<A>;
  /** The id of the first of its callers, in whose name it is made. */
  readonly calledAs: string;
  /** The caller has gone. The call ends when all have. */
  leave(): void;
}

/** Who asks, and how long it has. */
export interface Caller {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly deadline: number;
  /** From its arrival to its deadline. Callers of one key have the same. */
  readonly limitMs: number;
}

/**
 * Joins the call of the same key that is not made yet, or lets one be made by what `prepare` gives back. Nobody joins a call
 * that was made: a caller must not be answered by a read from before it asked.
 *
 * A call is made as soon as everything has run that the present turn of the event loop has begun. Where `NEVER_WAIT` callers
 * of its key or more are under way, it is made when the next of their calls ends, or when it has waited for long.
 */
export type Join<A> = (key: string, caller: Caller, prepare: () => MakeCall<A>) => Share<A>;

/** So many callers of one key never wait for one another: few calls cost little, and waiting could double their time. */
export const NEVER_WAIT = 4;

/**
 * How long callers wait for the calls before theirs, which may be lost: well beyond the usual time of a read. A call has the
 * deadline of its last caller, so the first may hear this much late that its time is over.
 */
const PATIENCE_MS = 100;
/** The same limit as a part of a caller's time. */
const PATIENCE_PART = 0.1;

/** Moments at which something is done. */
export interface Moments {
  whenTurnEnds(work: () => void): void;
  readonly after: After;
}

const moments: Moments = { whenTurnEnds: process.nextTick, after };

/** A call that is not made yet. */
interface Shared<A> extends Share<A> {
  /** The latest of its callers'. */
  deadline: number;
  callers: number;
  make(): void;
}

/** What there is of one key. */
interface Flight<A> {
  /** Callers whose call was made and has not ended. */
  callers: number;
  next: Shared<A> | undefined;
}

export function shareReads<A>({ whenTurnEnds, after }: Moments = moments): Join<A> {
  let flights = new Map<string, Flight<A>>();
  let added = 0;

  function flightOf(key: string): Flight<A> {
    const known = flights.get(key);
    if (known) return known;
    // A new Map now and then: each time that V8 makes room in one, what it held before keeps alive what it holds later.
    if (++added > 64 + 2 * flights.size) {
      flights = new Map(flights);
      added = 0;
    }
    const flight = { callers: 0, next: undefined };
    flights.set(key, flight);
    return flight;
  }

  function begin(key: string, { id, limitMs }: Caller, call: MakeCall<A>): Shared<A> {
    const flight = flightOf(key);
    const gone = new AbortController();
    let answerBy = (_: Promise<A>) => {};
    // Promise.withResolvers is not in every version of Node that this package runs on.
    const answer = new Promise<A>((resolve) => {
      answerBy = resolve;
    });
    const make = () => {
      if (flight.next !== shared) return;
      flight.next = undefined;
      stopWaiting?.();
      const { deadline, callers } = shared;
      if (callers === 0) gone.abort();
      flight.callers += callers;
      const made = call(deadline, gone.signal);
      const end = () => {
        flight.callers -= callers;
        if (flight.next) flight.next.make();
        else if (flight.callers === 0) flights.delete(key);
      };
      made.then(end, end);
      answerBy(made);
    };
    const leave = () => {
      // What is not made may still be joined.
      if (--shared.callers === 0 && flight.next !== shared) gone.abort();
    };
    const shared: Shared<A> = { deadline: 0, callers: 0, calledAs: id, answer, make, leave };
    flight.next = shared;
    const stopWaiting =
      flight.callers < NEVER_WAIT ? whenTurnEnds(make) : after(Math.min(PATIENCE_MS, PATIENCE_PART * limitMs), make);
    return shared;
  }

  return (key, caller, prepare) => {
    const shared = flights.get(key)?.next ?? begin(key, caller, prepare());
    shared.deadline = Math.max(shared.deadline, caller.deadline);
    shared.callers++;
    return shared;
  };
}
