/**
 * Queries that callers share. All that ask for the same before it is sent share a query. No caller joins a query that was
 * sent before, because its answer may be older than what that caller has seen. Such a caller waits for the next query, which
 * is sent when this one has returned.
 */
import { createBatcher } from "../engine/batcher.ts";
import { Unavailable } from "../port.ts";
import { type Call, withPatience } from "./deadline.ts";

type Waiting = Pick<Call, "isOver">;

/**
 * Resolves to the same object for all callers that share a query. `Q` is what JSON can hold. A query that nobody waits for
 * any more when its turn comes is not sent.
 */
export function shareQueries<Q, R>(query: (asked: Q) => Promise<R>): (asked: Q, call: Waiting) => Promise<R> {
  interface Asker extends PromiseWithResolvers<R> {
    readonly asked: Q;
    readonly call: Waiting;
  }

  async function send(askers: readonly Asker[]): Promise<void> {
    try {
      const first = askers.find(({ call }) => !call.isOver);
      if (!first) throw new Unavailable(false);
      const found = await query(first.asked);
      for (const { resolve } of askers) resolve(found);
    } catch (error) {
      for (const { reject } of askers) reject(error);
    }
  }

  const enter = createBatcher<string, Asker>(async (_, askers) => {
    await withPatience(send(askers));
    return [];
  });

  return (asked, call) => {
    const asker: Asker = { asked, call, ...Promise.withResolvers<R>() };
    enter(JSON.stringify(asked), asker);
    return asker.promise;
  };
}
