/**
 * The caller on whose behalf a saga runs. A document with a pending saga holds the caller that began it. So the request
 * itself, a later request that finds the saga pending and the recovery worker all advance it on behalf of that caller, at
 * the other services and in the logs.
 */

import type { CallContext } from "@petstore/rpc/call";
import type { Collection, Decide, Doc, Draft, Id, Indexes } from "@petstore/store/port";
import { storedWith } from "./record.ts";

interface Saga extends Doc {
  /** Present while a saga is unfinished. */
  readonly pending?: true | undefined;
  readonly caller?: string | undefined;
}

/** A collection whose documents hold the caller that began their pending saga. */
export interface Sagas<T extends Saga, I extends Indexes<T>, V> extends Omit<Collection<T, I, V>, "update"> {
  update<R>(id: Id, decide: Decide<T, R>, callContext: CallContext): Promise<R>;
}

/** Wraps a collection so that the caller whose write makes a document pending is stored in it until nothing is pending. */
export function withCaller<T extends Saga, I extends Indexes<T>, V>(collection: Collection<T, I, V>): Sagas<T, I, V> {
  const signed =
    ({ caller }: CallContext) =>
    ({ pending }: Draft<T>, before: T | undefined) => ({
      caller: pending && (before?.pending ? before.caller : caller),
    });
  return {
    ...collection,
    update: (id, decide, call) => collection.update(id, storedWith(decide, signed(call)), call),
  };
}

/** The call context on behalf of the caller that began the document's pending saga. */
export const onBehalfOf = <B extends CallContext>({ caller }: Saga, callContext: B): B => ({
  ...callContext,
  caller: caller ?? callContext.caller,
});
