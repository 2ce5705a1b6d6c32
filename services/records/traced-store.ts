/**
 * A span for each operation of a store, and in each record the trace of the write that made its present revision: so that
 * its event, and whoever finishes what it has left unfinished, can name that trace.
 */
import type { CallContext } from "@petstore/rpc/call";
import {
  type CallOptions,
  type Collection,
  type Decide,
  type Doc,
  type Indexes,
  put,
  type Schema,
  type Store,
} from "@petstore/store/port";
import { readTraceparent, type TraceContext, toTraceparent } from "@petstore/trace/context";
import { ATTR_DB_COLLECTION_NAME, ATTR_DB_OPERATION_NAME, ATTR_DB_SYSTEM_NAME } from "@petstore/trace/names";
import type { Tracing } from "@petstore/trace/tracing";
import type { StoredRecord } from "./record.ts";
import { storeFailureOf } from "./store-failure.ts";

/** A document that keeps the trace of its last write. */
export interface Traced {
  readonly rev?: number;
  readonly trace?: StoredRecord["trace"];
}

/** The traceparent of the write that made this revision. Undefined if its trace is not recorded. */
export const traceparentOf = ({ rev, trace }: Traced): string | undefined =>
  trace && trace.rev === rev ? trace.traceparent : undefined;

export const traceOf = (doc: Traced): TraceContext | undefined => readTraceparent(traceparentOf(doc));

/** Without traces it is the store itself. */
export function tracedStore(store: Store, tracing: Tracing | undefined, system: string): Store {
  if (!tracing) return store;

  function run<R>(operation: string, target: string, options: CallOptions | undefined, work: () => Promise<R>) {
    const trace = traceOfCall(options);
    return trace ? recorded(operation, target, trace, work) : work();
  }

  async function recorded<R>(operation: string, target: string, trace: TraceContext, work: () => Promise<R>) {
    const span = (tracing as Tracing).start(`${operation} ${target}`, "client", trace, {
      [ATTR_DB_SYSTEM_NAME]: system,
      [ATTR_DB_COLLECTION_NAME]: target,
      [ATTR_DB_OPERATION_NAME]: operation,
    });
    try {
      return await work();
    } catch (error) {
      // A rule that refuses is no failure of the store; its error is that of the call.
      if (storeFailureOf(error)) span.fail((error as Error).name);
      throw error;
    } finally {
      span.end();
    }
  }

  function traced<T extends Doc, I extends Indexes<T>, V>(
    collection: Collection<T, I, V>,
    { name, noted }: Schema<T, I, V>,
  ): Collection<T, I, V> {
    return {
      ...collection,
      get: (id, options) => run("get", name, options, () => collection.get(id, options)),
      getMany: (ids, options) => run("getMany", name, options, () => collection.getMany(ids, options)),
      list: (query, options) => run("list", name, options, () => collection.list(query, options)),
      listByPrefix: (query, options) =>
        run("listByPrefix", name, options, () => collection.listByPrefix(query, options)),
      update: (id, decide, options) => {
        const noting = noted ? withTrace(decide, options) : decide;
        return run("update", name, options, () => collection.update(id, noting, options));
      },
      remove: (id, isOver, options) => run("remove", name, options, () => collection.remove(id, isOver, options)),
    };
  }

  return {
    ...store,
    collection: async (schema) => traced(await store.collection(schema), schema),
    nextId: (sequence, options) => run("nextId", sequence, options, () => store.nextId(sequence, options)),
  };
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

/** The options of an operation are those of its call. */
const traceOfCall = (options: CallOptions | undefined) => (options as Partial<CallContext> | undefined)?.trace;
