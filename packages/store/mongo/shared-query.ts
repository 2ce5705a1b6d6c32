/**
 * A query that all share who ask for it before it is sent. One that was sent is joined by nobody, for its answer may be older
 * than what a later caller was told. That one waits for the next, which is sent when this is back.
 */
import { createBatcher } from "../engine/batcher.ts";
import { withPatience } from "./deadline.ts";

/** Resolves to the same object for all who share a query. */
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
