/** One change at a time for each document of a process. Updates that come meanwhile are folded into one write. */
import { createBatcher } from "../engine/batcher.ts";
import type { Decide, Doc, Id } from "../port.ts";
import type { Call } from "./deadline.ts";

/** Most updates in one write. */
const MAX_FOLDED = 256;

export interface Update<T extends Doc> {
  readonly decide: Decide<T, unknown>;
  readonly call: Call;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Entry<T extends Doc> = Update<T> | (() => Promise<void>);

/** `change` never rejects. It settles the first of the given updates, and resolves to the others, which have to wait. */
export function createPerKeyQueue<T extends Doc>(
  change: (id: Id, updates: readonly Update<T>[]) => Promise<readonly Update<T>[]>,
) {
  const enter = createBatcher<Id, Entry<T>>(async (id, entries) => {
    const [first] = entries;
    if (typeof first === "function") {
      await first();
      return entries.slice(1);
    }
    const end = entries.findIndex((entry) => typeof entry === "function");
    const updates = (end < 0 ? entries : entries.slice(0, end)) as Update<T>[];
    return [...(await change(id, updates)), ...entries.slice(updates.length)];
  }, MAX_FOLDED);

  return {
    update<R>(id: Id, decide: Decide<T, R>, call: Call): Promise<R> {
      const { promise, resolve, reject } = Promise.withResolvers<R>();
      enter(id, { decide, call, resolve: (result) => resolve(result as R), reject });
      return promise;
    },
    /** Runs a step alone, between two changes of the document. */
    alone<R>(id: Id, step: () => Promise<R>): Promise<R> {
      const { promise, resolve, reject } = Promise.withResolvers<R>();
      enter(id, () => step().then(resolve, reject));
      return promise;
    },
  };
}
