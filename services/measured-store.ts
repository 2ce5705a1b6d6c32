/** A store that records how long its calls take, and what of it can't be read. */
import type { Counter, Histogram } from "@petstore/metrics/registry";
import { type Collection, Corrupt, type Doc, type Indexes, type Schema, type Store } from "@petstore/store/port";
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

export function measured(
  store: Store,
  { system, namespace }: About,
  { operations, corrupt, now }: StoreMetrics,
): Store {
  /** `answer` was asked for at the time `since`. */
  function timed<R>(collection: string, operation: string, since: number, answer: Promise<R>): Promise<R> {
    const end = (type: string) =>
      operations.of(system, namespace, collection, operation, type).record((now() - since) / 1000);
    return answer.then(
      (result) => {
        end("");
        return result;
      },
      (error) => {
        // What a `decide` throws is an answer.
        end(storeFailureOf(error) ? error.name : "");
        if (error instanceof Corrupt) corrupt.of(collection).add();
        throw error;
      },
    );
  }

  return {
    ...store,
    async collection<T extends Doc, const I extends Indexes<T>, V>(
      schema: Schema<T, I, V>,
    ): Promise<Collection<T, I, V>> {
      const opened = await store.collection(schema);
      const { name } = schema;
      return {
        ...opened,
        get: (...call) => timed(name, "get", now(), opened.get(...call)),
        getMany: (...call) => timed(name, "getMany", now(), opened.getMany(...call)),
        list: (...call) => timed(name, "list", now(), opened.list(...call)),
        listByPrefix: (...call) => timed(name, "listByPrefix", now(), opened.listByPrefix(...call)),
        update: (...call) => timed(name, "update", now(), opened.update(...call)),
        remove: (...call) => timed(name, "remove", now(), opened.remove(...call)),
      };
    },
    nextId: (...call) => timed("", "nextId", now(), store.nextId(...call)),
  };
}
