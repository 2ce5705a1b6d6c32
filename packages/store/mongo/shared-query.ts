/**
 * A query that all callers share that request it before it is sent. No caller joins a query that was sent before, because
 * its answer may be older than what that caller has seen. Such a caller waits for the next query, which is sent when this
 * one has returned.
 */
import { createBatcher } from "../engine/batcher.ts";
import { withPatience } from "./deadline.ts";

/** Resolves to the same object for all callers that share a query. */
export function shareQuery<R>(query: () => Promise<R>): () => Promise<R> {
  type Asker = PromiseWithResolvers<R>;

  async function send(askers: readonly Asker[]): Promise<void> {
    try {
      const found = await query();
      for (const { resolve } of askers) resolve(found);
    } catch (error) {
      for (const { reject } of askers) reject(error);
    }
  }

  const enter = createBatcher<"all", Asker>(async (_, askers) => {
    await withPatience(send(askers));
    return [];
  });

  return () => {
    const asker = Promise.withResolvers<R>();
    enter("all", asker);
    return asker.promise;
  };
}
