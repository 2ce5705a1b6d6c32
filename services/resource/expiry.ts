/**
 * Removing what is over and old enough that nothing can ask for it any more: idempotency keys, and tombstones.
 *
 * A list asks for values and not for what is below one, so time is counted in periods that can be asked for one by one.
 */

import type { Budget } from "@petstore/rpc/call";
import type { Clock } from "@petstore/runtime/clock";
import { type Collection, type Decide, type Doc, type Draft, type Indexes, put } from "@petstore/store/port";

/** How long something is kept, in milliseconds: `ageMs` at least, and a period or two more at most. */
export interface Age {
  readonly ageMs: number;
  readonly periodMs: number;
}

export interface Retention {
  /** What outlives its request and is still relied on: keys, and what a process remembers of another's records. */
  readonly claims: Age;
  /** Tombstones: well beyond all that they guard against, which are claims, requests and messages under way. */
  readonly tombstones: Age;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const RETENTION: Retention = {
  claims: { ageMs: DAY_MS, periodMs: HOUR_MS },
  tombstones: { ageMs: 7 * DAY_MS, periodMs: DAY_MS },
};

/** How far back is looked for what expired while no process ran, in ages, and the periods that one list asks for. */
const LOOK_BACK_AGES = 52;
const PERIODS = 100;

export interface Expiry {
  /** The number of the period that it is now. */
  period(): number;
  /** Whether what came to be over in that period is old enough. Never true without one. */
  isOver(since: number | undefined): boolean;
  /** Every period that is old enough, the latest first, some at a time. */
  overdue(): Generator<number[]>;
}

export function createExpiry({ ageMs, periodMs }: Age, clock: Clock): Expiry {
  const period = () => Math.floor(clock() / periodMs);
  const kept = Math.ceil(ageMs / periodMs);
  const last = () => period() - kept - 1;
  return {
    period,
    isOver: (since) => since !== undefined && since <= last(),
    *overdue() {
      const end = last() - LOOK_BACK_AGES * kept;
      for (let from = last(); from > end; from -= PERIODS)
        yield Array.from({ length: Math.min(PERIODS, from - end) }, (_, i) => from - i);
    },
  };
}

interface Expiring<T> {
  /** Those that came to be over in one of the periods. */
  readonly list: (periods: readonly number[], limit: number, budget: Budget) => Promise<readonly T[]>;
  /** Removes one; false when it has to stay for now. */
  readonly remove: (doc: T, budget: Budget) => Promise<boolean>;
}

/** Removes what is old enough, `limit` at most. Resolves to how many. */
export async function removeOverdue<T>(
  expiry: Expiry,
  { list, remove }: Expiring<T>,
  limit: number,
  budget: Budget,
): Promise<number> {
  let removed = 0;
  for (const periods of expiry.overdue()) {
    if (removed >= limit) break;
    const old = await list(periods, limit - removed, budget);
    const gone = await Promise.all(old.map((doc) => remove(doc, budget)));
    removed += gone.filter(Boolean).length;
  }
  return removed;
}

/** A document that becomes a tombstone. */
export interface Mortal extends Doc {
  /** The period in which it became a tombstone, or was last changed as one. */
  readonly over?: number | undefined;
}
type Mortals = Pick<Collection<Mortal, { readonly over: readonly ["over"] }>, "list" | "remove">;

/** The same collection, in which tombstones bear their date. */
export function withExpiry<T extends Mortal, I extends Indexes<T>>(
  collection: Collection<T, I>,
  isTombstone: (doc: Draft<T>) => boolean,
  expiry: Expiry,
): Collection<T, I> {
  const dated = <R>(decide: Decide<T, R>): Decide<T, R> => {
    const over = expiry.period();
    return (doc, rev) => {
      const decision = decide(doc, rev);
      if (decision.action === "keep") return decision;
      return put({ ...decision.doc, over: isTombstone(decision.doc) ? over : undefined }, decision.result);
    };
  };
  return { ...collection, update: (id, decide, options) => collection.update(id, dated(decide), options) };
}

/** Removes tombstones that are old enough, `limit` at most. Resolves to how many. */
export const removeTombstones = (collection: Mortals, expiry: Expiry, limit: number, budget: Budget): Promise<number> =>
  removeOverdue(
    expiry,
    {
      list: (over, most, call) => collection.list({ where: { over }, limit: most, order: "asc" }, call),
      async remove({ _id }, call) {
        await collection.remove(_id, ({ over }) => expiry.isOver(over), call);
        return true;
      },
    },
    limit,
    budget,
  );
