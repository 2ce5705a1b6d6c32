/**
 * Removing what nothing can refer to any more: idempotency keys and tombstones.
 *
 * An index finds values, not ranges, so time is divided into periods (hours, days) that can be looked up one by one.
 */

import { background, type CallContext } from "@petstore/rpc/call";
import type { Clock } from "@petstore/runtime/clock";
import type { Collection, Doc, Draft, Indexes } from "@petstore/store/port";
import type { ListPage } from "./census.ts";
import type { NameSearch } from "./folded-names.ts";
import type { Keys } from "./idempotency-keys.ts";
import type { Deps, ServiceModule, Worker } from "./module.ts";
import { storedWith } from "./record.ts";
import type { Age } from "./retention.ts";

/** How far back to look for what expired while no process ran, as a multiple of the age. */
const MAX_AGES_BACK = 52;
/** Most periods in one query. */
const PERIODS_PER_LIST = 100;
/** Pause between two runs of an expiry worker, in milliseconds. */
const INTERVAL_MS = 600_000;

export type Expiry = ReturnType<typeof createExpiry>;

export function createExpiry({ ageMs, periodMs }: Age, clock: Clock) {
  const period = () => Math.floor(clock() / periodMs);
  const kept = Math.ceil(ageMs / periodMs);
  const last = () => period() - kept - 1;
  return {
    /** The number of the current period. */
    period,
    /** Whether what ended in that period is old enough to be removed. False without a period. */
    isExpired: (endedOn: number | undefined) => endedOn !== undefined && endedOn <= last(),
    /** The periods of what is not old enough yet. */
    keptPeriods: () => Array.from({ length: kept + 1 }, (_, i) => period() - i),
    /** The expired periods, the latest first, in batches. */
    *expiredPeriods(): Generator<number[]> {
      const end = last() - MAX_AGES_BACK * kept;
      for (let from = last(); from > end; from -= PERIODS_PER_LIST)
        yield Array.from({ length: Math.min(PERIODS_PER_LIST, from - end) }, (_, i) => from - i);
    },
  };
}

/**
 * Removes at most `limit` documents that are old enough, and resolves to their number. `list` reads those that ended in one
 * of the periods. `remove` resolves to false for one that has to stay for now.
 */
export async function removeExpired<T>(
  expiry: Expiry,
  limit: number,
  list: (periods: readonly number[], limit: number) => Promise<readonly T[]>,
  remove: (doc: T) => Promise<unknown>,
): Promise<number> {
  let removed = 0;
  for (const periods of expiry.expiredPeriods()) {
    if (removed >= limit) break;
    const old = await list(periods, limit - removed);
    const gone = await Promise.all(old.map(remove));
    removed += gone.filter((one) => one !== false).length;
  }
  return removed;
}

/** A document that becomes a tombstone at the end of its life. */
export interface ExpiringDoc extends Doc {
  /** The period in which it became a tombstone, or was last changed as one. */
  readonly endedOn?: number | undefined;
}
export type ExpiringDocs = Pick<Collection<ExpiringDoc, { readonly endedOn: readonly ["endedOn"] }>, "list" | "remove">;

/** Wraps a collection so that every write of a tombstone sets `endedOn`. */
export function withExpiry<T extends ExpiringDoc, I extends Indexes<T>, V>(
  collection: Collection<T, I, V>,
  isTombstone: (doc: Draft<T>) => boolean,
  expiry: Expiry,
): Collection<T, I, V> {
  const endOf = (doc: Draft<T>) => ({ endedOn: isTombstone(doc) ? expiry.period() : undefined });
  return { ...collection, update: (id, decide, options) => collection.update(id, storedWith(decide, endOf), options) };
}

/** A worker that removes tombstones that are old enough. */
export function tombstonesWorker(
  name: string,
  collection: ExpiringDocs,
  deps: Pick<Deps, "clock" | "random"> & { readonly expiry: Expiry },
): Worker {
  const { expiry } = deps;
  const remove = (most: number, call: CallContext) =>
    removeExpired(
      expiry,
      most,
      (endedOn, limit) => collection.list({ where: { endedOn }, limit, order: "asc" }, call),
      ({ _id }) => collection.remove(_id, ({ endedOn }) => expiry.isExpired(endedOn), call),
    );
  return expiryWorker(name, remove, deps);
}

/** Lists the tombstones that are not old enough to be removed. */
export const listTombstones =
  (collection: Pick<ExpiringDocs, "list">, expiry: Expiry): ListPage<ExpiringDoc> =>
  (page, callContext) =>
    collection.list({ ...page, where: { endedOn: expiry.keptPeriods() } }, callContext);

/** A worker that removes change events that are old enough. */
export const changesWorker = (
  name: string,
  collection: Pick<Collection<never>, "forgetChanges">,
  deps: Pick<Deps, "clock" | "random" | "retention">,
): Worker =>
  expiryWorker(
    name,
    (limit, callContext) => collection.forgetChanges(deps.clock() - deps.retention.eventsMs, limit, callContext),
    deps,
  );

/** A worker that removes what has expired, until nothing is left. */
export const expiryWorker = (
  name: string,
  remove: (limit: number, callContext: CallContext) => Promise<number>,
  deps: Pick<Deps, "clock" | "random">,
): Worker => ({
  name,
  everyMs: INTERVAL_MS,
  async run(limit, stop) {
    let removed = 0;
    for (let batch = limit; batch === limit && !stop?.aborted; removed += batch)
      batch = await remove(limit, background(deps, "expiry"));
    return removed;
  },
});

/** What every kind of record needs beside its own work: what has expired is removed, and what is kept is counted. */
interface Kept extends Pick<Deps, "clock" | "random" | "retention"> {
  readonly expiry: Expiry;
  readonly keys?: Keys;
  readonly names?: Pick<NameSearch<never>, "worker">;
}

/** `kind`: what the names of workers begin with, such as "pet". */
export function keepingOf(
  kind: string,
  records: ExpiringDocs & Pick<Collection<never>, "forgetChanges">,
  { keys, names, ...context }: Kept,
): Pick<ServiceModule, "workers" | "countable"> {
  return {
    workers: [
      ...(names ? [names.worker] : []),
      ...(keys ? [expiryWorker(`${kind}.keys`, keys.removeExpired, context)] : []),
      tombstonesWorker(`${kind}.tombstones`, records, context),
      changesWorker(`${kind}.changes`, records, context),
    ],
    countable: { tombstones: listTombstones(records, context.expiry), ...(keys && { keys: keys.list }) },
  };
}
