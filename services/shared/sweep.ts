import type { Deps } from "./deps.ts";
import type { Worker } from "./module.ts";
import { type Budget, background } from "./rpc/call.ts";

/** Where a batch begins and how far it goes. */
interface Batch {
  readonly after: number | undefined;
  readonly limit: number;
  readonly order: "asc";
}

interface Sweep<T> {
  readonly name: string;
  /** Pause between two runs, in milliseconds. */
  readonly everyMs: number;
  /** Reads, by an index, documents that have something unfinished. */
  readonly list: (batch: Batch, budget: Budget) => Promise<readonly T[]>;
  /** Takes one as far as it will go now. */
  readonly work: (doc: T, budget: Budget) => Promise<unknown>;
}

/**
 * A worker that visits documents with something unfinished, a batch in each run and round again, so that those that can't
 * be finished don't keep the rest from their turn. One that fails does not stop the others either; a run in which any
 * failed is a failed run.
 */
export function sweeping<T extends { readonly _id: number }>(
  { name, everyMs, list, work }: Sweep<T>,
  deps: Pick<Deps, "clock" | "random">,
): Worker {
  let after: number | undefined;
  return {
    name,
    everyMs,
    async sweep(limit) {
      const docs = await list({ after, limit, order: "asc" }, background(deps, "sweep"));
      after = docs.length < limit ? undefined : docs.at(-1)?._id;
      const failures: unknown[] = [];
      // Each has a budget of its own: one that waits must not use up the time of the rest.
      for (const doc of docs) await work(doc, background(deps, "sweep")).catch((error) => failures.push(error));
      if (failures.length > 0)
        throw new Error(`${failures.length} of ${docs.length} are left for another run`, { cause: failures[0] });
      return docs.length;
    },
  };
}

/** A worker that removes what has expired, until there is no more of it. */
export const removing = (
  name: string,
  remove: (limit: number, budget: Budget) => Promise<number>,
  deps: Pick<Deps, "clock" | "random">,
): Worker => ({
  name,
  everyMs: 600_000,
  async sweep(limit) {
    let removed = 0;
    for (let batch = limit; batch === limit; removed += batch) batch = await remove(limit, background(deps, "sweep"));
    return removed;
  },
});
