/** Callers that ask for the same at the same time are answered by one call. */

/** Makes a call that ends at a moment (milliseconds since 1970), or when the signal aborts. */
export type MakeCall<A> = (deadline: number, signal: AbortSignal) => Promise<A>;

/** One caller's part in a call. */
export interface Share<A> {
  readonly answer: Promise<A>;
  /** The caller has gone. The call ends when all have. */
  leave(): void;
}

interface Shared<A> {
  /** The latest of its callers'. They arrived in one turn of the event loop, so it is hardly later than the earliest. */
  deadline: number;
  callers: number;
  readonly gone: AbortController;
  readonly answer: Promise<A>;
  make(): void;
}

/**
 * Joins the call of the same key that is not made yet, or lets one be made by what `prepare` gives back. A call is made as
 * soon as everything has run that the present turn of the event loop has begun. Nobody joins it later: a caller must not
 * be answered by a read from before it asked.
 */
export type Join<A> = (key: string, deadline: number, prepare: () => MakeCall<A>) => Share<A>;

export function shareReads<A>(whenTurnEnds: (make: () => void) => void = process.nextTick): Join<A> {
  // A new one for each turn: what a Map has held is kept by what it holds later, until all memory is looked through.
  let notMade = new Map<string, Shared<A>>();

  function makeAll(): void {
    const all = notMade;
    notMade = new Map();
    for (const shared of all.values()) shared.make();
  }

  function begin(key: string, deadline: number, call: MakeCall<A>): Shared<A> {
    if (notMade.size === 0) whenTurnEnds(makeAll);
    const gone = new AbortController();
    let make = () => {};
    // Promise.withResolvers is not in every version of Node that this package runs on.
    const answer = new Promise<A>((resolve) => {
      make = () => resolve(call(shared.deadline, gone.signal));
    });
    const shared: Shared<A> = { deadline, callers: 0, gone, answer, make };
    notMade.set(key, shared);
    return shared;
  }

  return (key, deadline, prepare) => {
    const shared = notMade.get(key) ?? begin(key, deadline, prepare());
    shared.deadline = Math.max(shared.deadline, deadline);
    shared.callers++;
    const leave = () => {
      if (--shared.callers === 0) shared.gone.abort();
    };
    return { answer: shared.answer, leave };
  };
}

/** A call of one caller alone, made at once. */
export function unshared<A>(deadline: number, call: MakeCall<A>): Share<A> {
  const gone = new AbortController();
  return { answer: call(deadline, gone.signal), leave: () => gone.abort() };
}
