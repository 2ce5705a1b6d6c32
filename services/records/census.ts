/**
 * Counts what is stored, for metrics: page by page, so slowly that no call notices. It is a worker that changes nothing, so each
 * process of a service counts for itself.
 */
import { background, type CallContext } from "@petstore/rpc/call";
import type { Dispatcher } from "@petstore/rpc/server/dispatcher";
import type { Id, ListQuery } from "@petstore/store/port";
import { METRICS, type Metrics } from "../../processes/metrics.ts";
import type { ServiceName } from "../../processes/names.ts";
import type { Deps } from "./module.ts";

/** A page of what is to be counted, in the order of `_id`. */
export type ListPage<T> = (
  page: { readonly after: Id | undefined; readonly limit: number; readonly order: "asc" },
  callContext: CallContext,
) => Promise<readonly T[]>;

type Counted = { readonly _id: Id };

/** A record that waits for something. */
export interface Unfinished extends Counted {
  readonly state: string;
  /** Another number whenever it has come further. */
  readonly step: number;
}

/** Lists the records of a collection that are unfinished. */
export const listPending =
  <T extends { readonly _id: number; readonly state: string }>(
    collection: { list(query: ListQuery<{ readonly pending: true }>, callContext: CallContext): Promise<T[]> },
    stepOf: (doc: T) => number,
  ): ListPage<Unfinished> =>
  async (page, callContext) => {
    const docs = await collection.list({ ...page, where: { pending: true } }, callContext);
    return docs.map((doc) => ({ _id: doc._id, state: doc.state, step: stepOf(doc) }));
  };

/** What a service has that can be counted. */
export interface Countable {
  /** Records that workers have to finish. */
  readonly pending?: ListPage<Unfinished>;
  /** Those that pending records have. */
  readonly states?: readonly string[];
  /** These are changes that another service has to be told. */
  readonly isOutbox?: boolean;
  readonly tombstones: ListPage<Counted>;
  readonly keys?: ListPage<Counted>;
  /** How many reservations the last round has left unsettled. */
  readonly unsettled?: () => number;
}

const PAGE = 100;
const PAUSE_MS = 100;
/** Of more pending records, only so many are watched for how long they wait. */
const MAX_WATCHED = 10_000;

export function createCensus(
  { pending, states = [], tombstones, keys }: Countable,
  deps: Pick<Deps, "clock" | "random" | "sleep">,
) {
  /** When each was first seen at its step. */
  let watched = new Map<Id, { readonly step: number; readonly since: number }>();
  /** When the last look began. What has become of the records since then is not known, so they are no older. */
  let lookedAt = 0;
  /** What was found last. Each is undefined until all of it was counted once. */
  const found = {
    pending: undefined as ReadonlyMap<string, number> | undefined,
    tombstones: undefined as number | undefined,
    keys: undefined as number | undefined,
    /** How long the oldest of the pending records had waited at the same step when they were last looked at, in milliseconds. */
    oldestMs() {
      if (!found.pending) return undefined;
      return [...watched.values()].reduce((oldest, { since }) => Math.max(oldest, lookedAt - since), 0);
    },
  };

  async function each<T extends Counted>(list: ListPage<T>, stop: AbortSignal, take: (one: T) => void): Promise<void> {
    let after: Id | undefined;
    for (;;) {
      const page = await list({ after, limit: PAGE, order: "asc" }, background(deps, "census"));
      page.forEach(take);
      if (page.length < PAGE) return;
      after = page.at(-1)?._id;
      await deps.sleep(PAUSE_MS, stop);
    }
  }

  async function count(list: ListPage<Counted>, stop: AbortSignal): Promise<number> {
    let sum = 0;
    await each(list, stop, () => sum++);
    return sum;
  }

  return {
    found: found as Readonly<typeof found>,
    /** Looks once at all records that are pending. */
    async look(stop: AbortSignal): Promise<void> {
      if (!pending) return;
      const counts = new Map(states.map((state) => [state, 0]));
      const seen: typeof watched = new Map();
      const at = deps.clock();
      await each(pending, stop, ({ _id, state, step }) => {
        counts.set(state, (counts.get(state) ?? 0) + 1);
        const known = watched.get(_id);
        if (seen.size < MAX_WATCHED) seen.set(_id, known?.step === step ? known : { step, since: at });
      });
      watched = seen;
      lookedAt = at;
      found.pending = counts;
    },
    /** Counts all else once. */
    async run(stop: AbortSignal): Promise<void> {
      found.tombstones = await count(tombstones, stop);
      if (keys) found.keys = await count(keys, stop);
    },
  };
}

/** What a service shows of itself in metrics when it is asked. Returns what ends it. */
export function showService(
  { read }: Metrics,
  name: ServiceName,
  load: Dispatcher["load"],
  { isOutbox = false, unsettled }: Countable,
  found: ReturnType<typeof createCensus>["found"],
): (() => void)[] {
  return [
    read(METRICS.limit, (tell) => tell(load.limit(), name, name)),
    read(METRICS.running, (tell) => tell(load.underWay(), name, name)),
    read(METRICS.streams, (tell) => tell(load.streams(), name)),
    read(METRICS.pending, (tell) => {
      for (const [state, count] of found.pending ?? []) tell(count, name, state);
    }),
    read(METRICS.oldestPending, (tell) => {
      const oldest = found.oldestMs();
      if (oldest !== undefined) tell(oldest / 1000, name);
    }),
    read(METRICS.outboxLag, (tell) => {
      const oldest = isOutbox ? found.oldestMs() : undefined;
      if (oldest !== undefined) tell(oldest / 1000);
    }),
    read(METRICS.tombstones, (tell) => found.tombstones !== undefined && tell(found.tombstones, name)),
    read(METRICS.keys, (tell) => found.keys !== undefined && tell(found.keys, name)),
    read(METRICS.unsettled, (tell) => unsettled && tell(unsettled())),
  ];
}
