/**
 * Queries that callers share. All that ask for the same before it is sent share a query. No caller joins a query that was
 * sent before, because its answer may be older than what that caller has seen. Such a caller waits for the next query, which
 * is sent when this one has returned.
 */
import { createBatcher, type Process } from "../engine/batcher.ts";
import { type Awaiting, nobodyWaits, type ReadLimits, whileAwaited } from "./deadline.ts";

export interface Asker {
  readonly by: readonly Awaiting[];
  readonly reject: (error: unknown) => void;
}

/** Processes a batch of askers with one query, or rejects all. Those that nobody waits for any more are left out. */
export const together =
  <K, A extends Asker>(query: (key: K, askers: readonly A[], limits: ReadLimits) => Promise<void>): Process<K, A> =>
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
  interface One extends Asker {
    readonly asked: Q;
    readonly resolve: (found: R) => void;
  }

  const enter = createBatcher(
    together<string, One>(async (_, askers, limits) => {
      const found = await query((askers[0] as One).asked, limits);
      for (const { resolve } of askers) resolve(found);
    }),
  );

  return (asked: Q, by: Awaiting): Promise<R> => {
    const { promise, resolve, reject } = Promise.withResolvers<R>();
    enter(JSON.stringify(asked), { asked, by: [by], resolve, reject });
    return promise;
  };
}
