/**
 * Queries that are shared. Those who ask the same share one, as long as it was not sent: one that was sent is joined by nobody,
 * for its answer may be older than what a later caller was told. That one waits for the next, which is sent when this is back.
 */
import { createBatcher } from "../engine/batcher.ts";
import { withPatience } from "./deadline.ts";

/** Resolves to the same object for all who share a query. `keyOf` is equal for those who ask the same. */
export function shareQueries<A, R>(
  query: (asked: A) => Promise<R>,
  keyOf: (asked: A) => string,
): (asked: A) => Promise<R> {
  type Asker = PromiseWithResolvers<R> & { readonly asked: A };

  async function send(askers: readonly Asker[]): Promise<void> {
    const { asked } = askers[0] as Asker;
    try {
      const found = await query(asked);
      for (const { resolve } of askers) resolve(found);
    } catch (error) {
      for (const { reject } of askers) reject(error);
    }
  }

  const ask = createBatcher<string, Asker>(async (_, askers) => {
    await withPatience(send(askers));
    return [];
  });

  return (asked) => {
    const asker: Asker = { asked, ...Promise.withResolvers<R>() };
    ask(keyOf(asked), asker);
    return asker.promise;
  };
}
