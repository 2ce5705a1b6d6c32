/** Work that no request waits for: finishing what a crash, a failure or a lost call has left unfinished. */
import { background, type CallContext } from "@petstore/rpc/call";
import type { Collection, Decide, Doc, Draft, Id, Indexes, ListQuery } from "@petstore/store/port";
import type { TraceContext } from "@petstore/trace/context";
import type { Deps, Worker } from "./module.ts";
import type { PageStart } from "./page.ts";
import { type StoredRecord, storedWith, type Traced, traceOf } from "./record.ts";

/** Documents that a run works on at the same time by default. */
const CONCURRENCY = 8;
/** Most different failures that the error of one run names. */
const MAX_MESSAGES = 3;

interface Recovery<T> extends Pick<Worker, "name" | "everyMs"> {
  readonly concurrency?: number;
  readonly records: {
    list(query: ListQuery<{ readonly pending: true }>, callContext: CallContext): Promise<readonly T[]>;
  };
  /** Advances one document as far as it can go now. */
  readonly advance: (doc: T, callContext: CallContext) => Promise<unknown>;
}

/**
 * Lists documents in turn: each batch goes on after the last document of the batch before and wraps around at the end. The
 * first begins at a random document, so that the replicas of a service do not all work on the same ones.
 */
export function inTurn<T extends { readonly _id: number }>(
  /** Reads, by an index, documents that have something unfinished. */
  list: (batch: PageStart, callContext: CallContext) => Promise<readonly T[]>,
  deps: Pick<Deps, "clock" | "random">,
): (limit: number) => Promise<readonly T[]> {
  /** The last document of the batch before. */
  let cursor: number | undefined;

  return async (limit) => {
    const callContext = background(deps, "recovery");
    if (cursor === undefined) {
      const [newest] = await list({ after: undefined, limit: 1, order: "desc" }, callContext);
      if (!newest) return [];
      cursor = Math.floor(deps.random() * newest._id);
    }
    const after = cursor;
    const above = await list({ after, limit, order: "asc" }, callContext);
    const room = limit - above.length;
    const below = room > 0 ? await list({ after: undefined, limit: room, order: "asc" }, callContext) : [];
    const batch = [...above, ...below.filter(({ _id }) => _id <= after)];
    cursor = batch.at(-1)?._id;
    return batch;
  };
}

/**
 * Does work as a span that leads to whatever has left it to be done; without a span if nothing of that is recorded. The trace
 * `of` goes on with the work, or else it begins one; `by` are others that have left it, or a part of it.
 */
export async function tracedWork<R>(
  { tracing }: Pick<Deps, "tracing">,
  name: string,
  {
    of,
    by = [],
  }: { readonly of?: TraceContext | undefined; readonly by?: readonly (TraceContext | undefined)[] | undefined },
  callContext: CallContext,
  work: (callContext: CallContext) => Promise<R>,
): Promise<R> {
  if (!tracing) return work(callContext);
  const links = by.filter((trace) => trace !== undefined);
  if (!of && links.length === 0) return work(callContext);
  const span = tracing.start(name, "internal", of, undefined, links);
  try {
    return await work({ ...callContext, trace: span.context });
  } catch (error) {
    span.fail(error instanceof Error ? error.name : "unknown");
    throw error;
  } finally {
    span.end();
  }
}

/**
 * A worker that advances pending records, one batch in each run, in turn: those that can't be finished do not keep
 * the others from theirs. A failure does not stop the others; a run with failures rejects at its end, with an error that
 * gives their number and causes.
 */
export function recoveryWorker<T extends Traced & { readonly _id: number }>(
  { name, everyMs, concurrency = CONCURRENCY, records, advance }: Recovery<T>,
  deps: Pick<Deps, "clock" | "random" | "tracing">,
): Worker {
  const next = inTurn<T>((batch, call) => records.list({ ...batch, where: { pending: true } }, call), deps);
  return {
    name,
    everyMs,
    async run(limit, stop) {
      const batch = await next(limit);
      const waiting = batch.values();
      const failures: unknown[] = [];
      let begun = 0;
      const advanceOneByOne = async () => {
        for (const doc of waiting) {
          if (stop?.aborted) return;
          begun++;
          // Each has a deadline of its own: one that waits must not use up the time of the rest.
          const work = (callContext: CallContext) => advance(doc, callContext);
          const left = { by: deps.tracing && [traceOf(doc)] };
          await tracedWork(deps, name, left, background(deps, "recovery"), work).catch((error) => failures.push(error));
        }
      };
      await Promise.all(Array.from({ length: Math.min(concurrency, batch.length) }, advanceOneByOne));
      if (failures.length > 0)
        throw new Error(`${failures.length} of ${begun} are left for another run: ${summaryOf(failures)}`, {
          cause: failures[0],
        });
      return begun;
    },
  };
}

/** "peer is down (3 times); no such pet". */
function summaryOf(failures: readonly unknown[]): string {
  const alike = Map.groupBy(failures, (error) => (error instanceof Error ? error.message : String(error)));
  const messages = [...alike].map(([message, { length }]) => (length > 1 ? `${message} (${length} times)` : message));
  const others = messages.length > MAX_MESSAGES ? [`${messages.length - MAX_MESSAGES} other failures`] : [];
  return [...messages.slice(0, MAX_MESSAGES), ...others].join("; ");
}

/**
 * A document that is `pending` while a saga of it is unfinished. It holds the caller that began the saga. So the request itself,
 * a later request that finds the saga pending and the recovery worker all advance it on behalf of that caller, at the other
 * services and in the logs.
 */
type Saga = Doc & Pick<StoredRecord, "pending" | "caller">;

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
