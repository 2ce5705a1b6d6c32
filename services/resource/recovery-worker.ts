import { type Budget, background } from "@petstore/rpc/call";
import type { Deps } from "./deps.ts";
import type { Worker } from "./module.ts";

/** Documents that a run works on at the same time, unless it says otherwise. */
const CONCURRENCY = 8;
/** Different failures that the error of one run names. */
const MESSAGES = 3;

/** Where a batch begins and how far it goes. */
interface Batch {
  readonly after: number | undefined;
  readonly limit: number;
  readonly order: "asc" | "desc";
}

interface Sweep<T> {
  readonly name: string;
  /** Pause between two runs, in milliseconds. */
  readonly everyMs: number;
  /** Documents to work on at the same time. */
  readonly atOnce?: number;
  /** Reads, by an index, documents that have something unfinished. */
  readonly list: (batch: Batch, budget: Budget) => Promise<readonly T[]>;
  /** Takes one as far as it will go now. */
  readonly work: (doc: T, budget: Budget) => Promise<unknown>;
}

/**
 * A worker that visits documents with something unfinished, a batch in each run and round again, so that those that can't
 * be finished don't keep the rest from their turn. It begins anywhere, so that the replicas of a service are not all at the
 * same documents. One that fails does not stop the others either; a run in which any failed is a failed run, whose
 * error says how many did and why.
 */
export function sweeping<T extends { readonly _id: number }>(
  { name, everyMs, atOnce = CONCURRENCY, list, work }: Sweep<T>,
  deps: Pick<Deps, "clock" | "random">,
): Worker {
  /** The document that was visited last. */
  let cursor: number | undefined;

  async function nextBatch(limit: number): Promise<readonly T[]> {
    const budget = background(deps, "sweep");
    if (cursor === undefined) {
      const [newest] = await list({ after: undefined, limit: 1, order: "desc" }, budget);
      if (!newest) return [];
      cursor = Math.floor(deps.random() * newest._id);
    }
    const after = cursor;
    const above = await list({ after, limit, order: "asc" }, budget);
    const room = limit - above.length;
    const below = room > 0 ? await list({ after: undefined, limit: room, order: "asc" }, budget) : [];
    const batch = [...above, ...below.filter(({ _id }) => _id <= after)];
    cursor = batch.at(-1)?._id;
    return batch;
  }

  return {
    name,
    everyMs,
    async sweep(limit, stop) {
      const batch = await nextBatch(limit);
      const waiting = batch.values();
      const failures: unknown[] = [];
      let visited = 0;
      const visit = async () => {
        for (const doc of waiting) {
          if (stop?.aborted) return;
          visited++;
          // Each has a budget of its own: one that waits must not use up the time of the rest.
          await work(doc, background(deps, "sweep")).catch((error) => failures.push(error));
        }
      };
      await Promise.all(Array.from({ length: atOnce }, visit));
      if (failures.length > 0)
        throw new Error(`${failures.length} of ${visited} are left for another run: ${summaryOf(failures)}`, {
          cause: failures[0],
        });
      return visited;
    },
  };
}

/** "peer is down (3 times); no such pet". */
function summaryOf(failures: readonly unknown[]): string {
  const alike = Map.groupBy(failures, (error) => (error instanceof Error ? error.message : String(error)));
  const messages = [...alike].map(([message, { length }]) => (length > 1 ? `${message} (${length} times)` : message));
  const others = messages.length > MESSAGES ? [`${messages.length - MESSAGES} other failures`] : [];
  return [...messages.slice(0, MESSAGES), ...others].join("; ");
}

/** A worker that removes what has expired, until there is no more of it. */
export const removing = (
  name: string,
  remove: (limit: number, budget: Budget) => Promise<number>,
  deps: Pick<Deps, "clock" | "random">,
): Worker => ({
  name,
  everyMs: 600_000,
  async sweep(limit, stop) {
    let removed = 0;
    for (let batch = limit; batch === limit && !stop?.aborted; removed += batch)
      batch = await remove(limit, background(deps, "sweep"));
    return removed;
  },
});
