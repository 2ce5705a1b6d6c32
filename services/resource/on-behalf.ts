/**
 * In whose name a saga goes on. What is unfinished bears the caller that began it. So the request itself, another request
 * that meets it and a worker advance it in the same name, at the other services and in the logs.
 */
import type { Budget } from "@petstore/rpc/call";
import { type Collection, type Decide, type Doc, type Id, type Indexes, put } from "@petstore/store/port";

interface Saga extends Doc {
  /** Present on what is unfinished. */
  readonly todo?: true | undefined;
  readonly caller?: string | undefined;
}

/** A collection of documents that bear the caller that began what is unfinished in them. */
export interface Sagas<T extends Saga, I extends Indexes<T>> extends Omit<Collection<T, I>, "update"> {
  update<R>(id: Id, decide: Decide<T, R>, budget: Budget): Promise<R>;
}

/** The same collection. Whoever makes a document unfinished is written down in it, until it is finished. */
export function withCaller<T extends Saga, I extends Indexes<T>>(collection: Collection<T, I>): Sagas<T, I> {
  const signed =
    <R>(decide: Decide<T, R>, { caller }: Budget): Decide<T, R> =>
    (doc, rev) => {
      const decision = decide(doc, rev);
      if (decision.action === "keep") return decision;
      const began = doc?.todo ? doc.caller : caller;
      return put({ ...decision.doc, caller: decision.doc.todo ? began : undefined }, decision.result);
    };
  return { ...collection, update: (id, decide, budget) => collection.update(id, signed(decide, budget), budget) };
}

/** The same budget in the name of the caller that began what is unfinished in the document. */
export const onBehalfOf = <B extends Budget>({ caller }: Saga, budget: B): B =>
  caller === undefined ? budget : { ...budget, caller };
