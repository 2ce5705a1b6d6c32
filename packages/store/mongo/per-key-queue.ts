/**
 * One change at a time for each document of a process. Updates that come in meanwhile wait together, and are then folded
 * into one write.
 */

import type { Decide, Doc, Id } from "../port.ts";
import type { Limit } from "./deadline.ts";

/** Updates in one write. */
const FOLD = 256;

export interface Update<T extends Doc> {
  readonly decide: Decide<T, unknown>;
  readonly limit: Limit;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export interface Lanes<T extends Doc> {
  update<R>(id: Id, decide: Decide<T, R>, limit: Limit): Promise<R>;
  /** Runs something by itself between two changes of the document. */
  alone<R>(id: Id, step: () => Promise<R>): Promise<R>;
}

type Entry<T extends Doc> = Update<T> | (() => Promise<void>);

/** `change` never rejects. It settles the first of the updates that it is given, and resolves to those that have to wait. */
export function createLanes<T extends Doc>(
  change: (id: Id, updates: readonly Update<T>[]) => Promise<readonly Update<T>[]>,
): Lanes<T> {
  const lanes = new Map<Id, Entry<T>[]>();

  function enter(id: Id, entry: Entry<T>): void {
    const lane = lanes.get(id);
    if (lane) return void lane.push(entry);
    const opened = [entry];
    lanes.set(id, opened);
    void drain(id, opened);
  }

  async function drain(id: Id, lane: Entry<T>[]): Promise<void> {
    for (let [first] = lane; first; [first] = lane) {
      if (typeof first === "function") {
        lane.shift();
        await first();
      } else lane.unshift(...(await change(id, takeUpdates(lane))));
    }
    lanes.delete(id);
  }

  return {
    update<R>(id: Id, decide: Decide<T, R>, limit: Limit) {
      const { promise, resolve, reject } = Promise.withResolvers<R>();
      enter(id, { decide, limit, resolve: (result) => resolve(result as R), reject });
      return promise;
    },
    alone<R>(id: Id, step: () => Promise<R>) {
      const { promise, resolve, reject } = Promise.withResolvers<R>();
      enter(id, () => step().then(resolve, reject));
      return promise;
    },
  };
}

function takeUpdates<T extends Doc>(lane: Entry<T>[]): Update<T>[] {
  const end = lane.findIndex((entry) => typeof entry === "function");
  return lane.splice(0, Math.min(FOLD, end < 0 ? lane.length : end)) as Update<T>[];
}
