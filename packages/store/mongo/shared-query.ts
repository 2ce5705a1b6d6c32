/**
 * Queries that callers share, and how many go on at a time. All that ask for the same before it is sent share a query. No
 * caller joins a query that was sent before, because its answer may be older than what that caller has seen. Such a caller
 * waits for the next query, which is sent when this one has returned.
 */
import { createBatcher, type Process, type Waiting } from "../engine/batcher.ts";
import { type Awaiting, nobodyWaits, type ReadLimits, whileAwaited } from "./deadline.ts";

export interface Asker<R> extends Waiting<R> {
  readonly by: readonly Awaiting[];
}

/** Processes a batch of askers with one query, or rejects all. Those that nobody waits for any more are left out. */
export const together =
  <K, A extends Asker<never>>(
    query: (key: K, askers: readonly A[], limits: ReadLimits) => Promise<void>,
  ): Process<K, A> =>
  async (key, all) => {
    const { awaited = [], left = [] } = Object.groupBy(all, ({ by }) =>
      by.some(({ isOver }) => !isOver) ? "awaited" : "left",
    );
    for (const { reject } of left) reject(nobodyWaits());
    if (awaited.length === 0) return [];
    const by = awaited.flatMap((asker) => asker.by);
    await whileAwaited(by, async (limits) => {
      try {
        await query(key, awaited, limits);
      } catch (error) {
        for (const { reject } of awaited) reject(error);
      }
    });
    return [];
  };

/** Resolves to the same object for all callers that share a query. `Q` is what JSON can hold. */
export function shareQueries<Q, R>(query: (asked: Q, limits: ReadLimits) => Promise<R>) {
  type One = Asker<R> & { readonly asked: Q };
  const enter = createBatcher<string, Pick<One, "asked" | "by">, R>(
    together<string, One>(async (_, askers, limits) => {
      const found = await query((askers[0] as One).asked, limits);
      for (const { resolve } of askers) resolve(found);
    }),
  );
  return (asked: Q, by: Awaiting): Promise<R> => enter(JSON.stringify(asked), { asked, by: [by] });
}

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
