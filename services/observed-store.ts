/**
 * A store that records how long its operations take, and what of it can't be read. Operations of a recorded trace are spans,
 * and each record keeps the trace of the write that made its present revision: so that its event, and whoever finishes what it
 * has left unfinished, can name that trace.
 */
import type { Counter, Histogram } from "@petstore/metrics/registry";
import type { CallContext } from "@petstore/rpc/call";
import {
  type CallOptions,
  type Collection,
  Corrupt,
  type Decide,
  type Doc,
  type Indexes,
  put,
  type Schema,
  type Store,
} from "@petstore/store/port";
import { toTraceparent } from "@petstore/trace/context";
import { ATTR_DB_COLLECTION_NAME, ATTR_DB_OPERATION_NAME, ATTR_DB_SYSTEM_NAME } from "@petstore/trace/names";
import type { Tracing } from "@petstore/trace/tracing";
import { storeFailureOf } from "./records/store-failure.ts";

export interface StoreMetrics {
  /** By system, namespace, collection, operation and type of error. */
  readonly operations: Histogram<readonly [string, string, string, string, string]>;
  /** By collection. */
  readonly corrupt: Counter<readonly [string]>;
  /** Milliseconds. */
  readonly now: () => number;
}

export interface About {
  readonly system: "mongodb" | "sqlite";
  readonly namespace: string;
}

export function observed(
  store: Store,
  { system, namespace }: About,
  { operations, corrupt, now }: StoreMetrics,
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
    return (doc, rev) => {
      const decision = decide(doc, rev);
      if (decision.action === "keep") return decision;
      return put({ ...decision.doc, trace: { rev, traceparent } }, decision.result);
    };
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
