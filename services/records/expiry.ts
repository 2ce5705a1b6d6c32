/**
 * Removing what nothing can refer to any more: idempotency keys, tombstones and change events; and listing the keys and
 * tombstones that are kept, to be counted.
 *
 * An index finds values, not ranges, so time is divided into periods (hours, days) that can be looked up one by one.
 */

import { background, type CallContext } from "@petstore/rpc/call";
import type { Clock } from "@petstore/runtime/clock";
import type { Collection, Doc, Draft, Indexes } from "@petstore/store/port";
import type { NameSearch } from "./folded-names.ts";
import type { Keys } from "./idempotency-keys.ts";
import type { Deps, ServiceModule, Worker } from "./module.ts";
import { type StoredRecord, storedWith } from "./record.ts";
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

/** A document that becomes a tombstone at the end of its life: `endedOn` is the period in which it was last changed as one. */
type ExpiringDoc = Doc & Pick<StoredRecord, "endedOn">;
type ExpiringDocs = Pick<Collection<ExpiringDoc, { readonly endedOn: readonly ["endedOn"] }>, "list" | "remove">;

/** Wraps a collection so that every write of a tombstone sets `endedOn`. */
export function withExpiry<T extends ExpiringDoc, I extends Indexes<T>, V>(
  collection: Collection<T, I, V>,
  isTombstone: (doc: Draft<T>) => boolean,
  expiry: Expiry,
): Collection<T, I, V> {
  return {
    ...collection,
    update(id, decide, options) {
      const period = expiry.period();
      const endOf = (doc: Draft<T>) => ({ endedOn: isTombstone(doc) ? period : undefined });
      return collection.update(id, storedWith(decide, endOf), options);
    },
  };
}

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

/**
 * What every kind of record needs beside its own work: what has expired is removed, and what is kept is counted. `kind`: what
 * the names of workers begin with, such as "pet".
 */
export function keepingOf(
  kind: string,
  records: ExpiringDocs & Pick<Collection<never>, "forgetChanges">,
  { expiry, keys, names, retention, ...deps }: Kept,
): Pick<ServiceModule, "workers" | "countable"> {
  const removeTombstones = (most: number, call: CallContext) =>
    removeExpired(
      expiry,
      most,
      (endedOn, limit) => records.list({ where: { endedOn }, limit, order: "asc" }, call),
      ({ _id }) => records.remove(_id, ({ endedOn }) => expiry.isExpired(endedOn), call),
    );
  const forgetChanges = (most: number, call: CallContext) =>
    records.forgetChanges(deps.clock() - retention.eventsMs, most, call);
  return {
    workers: [
      ...(names ? [names.worker] : []),
      ...(keys ? [expiryWorker(`${kind}.keys`, keys.removeExpired, deps)] : []),
      expiryWorker(`${kind}.tombstones`, removeTombstones, deps),
      expiryWorker(`${kind}.changes`, forgetChanges, deps),
    ],
    countable: {
      tombstones: (page, call) => records.list({ ...page, where: { endedOn: expiry.keptPeriods() } }, call),
      ...(keys && { keys: keys.list }),
    },
  };
}

interface Kept extends Pick<Deps, "clock" | "random" | "retention"> {
  readonly expiry: Expiry;
  readonly keys?: Keys;
  readonly names?: Pick<NameSearch<never>, "worker">;
}
