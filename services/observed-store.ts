/**
 * The store as a service has it: it records how long its operations take, and what of it can't be read. Operations of a
 * recorded trace are spans, and each record keeps the trace of the write that made its present revision: so that its event, and whoever finishes what it
 * has left unfinished, can name that trace.
 */

import type { CallContext } from "@petstore/rpc/call";
import type { StoreFailure } from "@petstore/rpc/errors";
import {
  type CallOptions,
  type Collection,
  Corrupt,
  type Decide,
  type Doc,
  Full,
  type Indexes,
  Overloaded,
  type Schema,
  type Store,
  Unavailable,
} from "@petstore/store/port";
import { toTraceparent } from "@petstore/trace/context";
import { ATTR_DB_COLLECTION_NAME, ATTR_DB_OPERATION_NAME, ATTR_DB_SYSTEM_NAME } from "@petstore/trace/names";
import type { Tracing } from "@petstore/trace/tracing";
import type { Metrics } from "../processes/metrics.ts";
import type { Deps } from "./records/module.ts";
import { storedWith } from "./records/record.ts";

/** How long a service waits for its store to know whether it is ready, in milliseconds. */
const PATIENCE_MS = 1_000;

export function observed(
  store: Store,
  { system, namespace }: { readonly system: "mongodb" | "sqlite"; readonly namespace: string },
  { operations, corrupt, now }: Pick<Metrics, "operations" | "corrupt" | "now">,
  tracing?: Tracing | undefined,
): Store {
  const traceOfCall = (options: CallOptions | undefined) =>
    // The options of an operation are those of its call.
    tracing && (options as Partial<CallContext> | undefined)?.trace;

  function spanOf(operation: string, target: string, options: CallOptions | undefined) {
    const trace = traceOfCall(options);
    return (
      trace &&
      tracing?.start(`${operation} ${target}`, "client", trace, {
        [ATTR_DB_SYSTEM_NAME]: system,
        [ATTR_DB_COLLECTION_NAME]: target,
        [ATTR_DB_OPERATION_NAME]: operation,
      })
    );
  }

  async function run<R>(
    operation: string,
    collection: string,
    options: CallOptions | undefined,
    work: () => Promise<R>,
    target = collection,
  ): Promise<R> {
    const span = spanOf(operation, target, options);
    const since = now();
    let failure = "";
    try {
      return await work();
    } catch (error) {
      // What a `decide` throws is an answer.
      if (storeFailureOf(error)) failure = (error as Error).name;
      if (failure) span?.fail(failure);
      if (error instanceof Corrupt) corrupt.of(collection).add();
      throw error;
    } finally {
      operations.of(system, namespace, collection, operation, failure).record((now() - since) / 1000);
      span?.end();
    }
  }

  function withTrace<T extends Doc, R>(decide: Decide<T, R>, options: CallOptions | undefined): Decide<T, R> {
    const trace = traceOfCall(options);
    if (!trace) return decide;
    const traceparent = toTraceparent(trace);
    return storedWith(decide, (_doc, _before, rev) => ({ trace: { rev, traceparent } }));
  }

  return {
    ...store,
    async collection<T extends Doc, const I extends Indexes<T>, V>(
      schema: Schema<T, I, V>,
    ): Promise<Collection<T, I, V>> {
      const opened = await store.collection(schema);
      const { name, noted } = schema;
      return {
        ...opened,
        get: (id, options) => run("get", name, options, () => opened.get(id, options)),
        getMany: (ids, options) => run("getMany", name, options, () => opened.getMany(ids, options)),
        list: (query, options) => run("list", name, options, () => opened.list(query, options)),
        listByPrefix: (query, options) => run("listByPrefix", name, options, () => opened.listByPrefix(query, options)),
        update: (id, decide, options) =>
          run("update", name, options, () => opened.update(id, noted ? withTrace(decide, options) : decide, options)),
        remove: (id, isOver, options) => run("remove", name, options, () => opened.remove(id, isOver, options)),
      };
    },
    nextId: (sequence, options) => run("nextId", "", options, () => store.nextId(sequence, options), sequence),
  };
}

/** What a failure of the store is for the callers of a service. Undefined for any other error. */
export function storeFailureOf(thrown: unknown): StoreFailure | undefined {
  if (thrown instanceof Overloaded) return "overloaded";
  if (thrown instanceof Full) return "full";
  if (thrown instanceof Unavailable) return thrown.inDoubt ? "in doubt" : "unreachable";
  return thrown instanceof Corrupt ? "corrupt" : undefined;
}

/**
 * Whether the store answers in time. Other services are not asked: they call each other in both directions, and would
 * wait for one another.
 */
export async function canServe(
  store: Pick<Store, "ping">,
  { clock, sleep }: Pick<Deps, "clock" | "sleep">,
): Promise<boolean> {
  const over = new AbortController();
  const answer = store.ping({ deadline: clock() + PATIENCE_MS }).then(() => true);
  // The store may wait for a disk that hangs.
  const late = sleep(PATIENCE_MS, over.signal).then(() => false);
  return Promise.race([answer, late])
    .catch(() => false)
    .finally(() => over.abort());
}
