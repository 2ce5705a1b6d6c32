/** Runs a limited number of tasks at a time. Others wait in order, and leave when their signal aborts. */
export type Turns = <R>(signal: AbortSignal, work: () => Promise<R>) => Promise<R>;

/** Rejects with the signal's reason if it aborts before the turn. A task that has begun keeps its turn until it has ended. */
export function createTurns(max: number): Turns {
  let free = max;
  const waiting = new Set<() => void>();

  function turn(signal: AbortSignal): Promise<void> {
    if (free > 0) {
      free--;
      return Promise.resolve();
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const begin = () => {
      signal.removeEventListener("abort", leave);
      resolve();
    };
    const leave = () => {
      waiting.delete(begin);
      reject(signal.reason);
    };
    waiting.add(begin);
    signal.addEventListener("abort", leave, { once: true });
    return promise;
  }
  function pass(): void {
    const [next] = waiting;
    if (!next) {
      free++;
      return;
    }
    waiting.delete(next);
    next();
  }

  return async (signal, work) => {
    await turn(signal);
    try {
      return await work();
    } finally {
      pass();
    }
  };
}
