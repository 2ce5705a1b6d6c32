/**
 * Admission control: limits the calls that wait for the store. Beyond the limits a call is refused at once and certainly
 * without effect.
 *
 * A call that has begun to change something is not refused any more, because its caller would take that for "nothing was
 * done". Such a call is recognised by the `progress` in its options, which all its steps share. It waits for one step at a
 * time, so the limits on first steps also bound the later ones.
 */
import { type CallOptions, type Id, Overloaded } from "../port.ts";

/** Most changes of one document that wait at a time. */
export const MAX_PER_DOCUMENT = 2_000;
/** Most calls of all kinds that wait at a time. */
export const MAX_IN_ALL = 10_000;

/** Counts what waits for each document of a collection. */
export type Queues = Map<Id, number>;

export type Admission = ReturnType<typeof createAdmission>;

export function createAdmission() {
  let all = 0;
  const hasBegun = (options: CallOptions | undefined) => options?.progress?.hasBegun === true;

  async function counted<R>(options: CallOptions | undefined, call: () => Promise<R>): Promise<R> {
    if (all >= MAX_IN_ALL && !hasBegun(options)) throw new Overloaded("the store");
    all++;
    try {
      return await call();
    } finally {
      all--;
    }
  }

  return {
    read: counted,
    /** Runs a call that may change a document. */
    change: <R>(queues: Queues, id: Id, options: CallOptions | undefined, call: () => Promise<R>): Promise<R> =>
      counted(options, async () => {
        const waiting = queues.get(id) ?? 0;
        if (waiting >= MAX_PER_DOCUMENT && !hasBegun(options)) throw new Overloaded("one record");
        if (options?.progress) options.progress.hasBegun = true;
        queues.set(id, waiting + 1);
        try {
          return await call();
        } finally {
          const left = (queues.get(id) ?? 1) - 1;
          if (left > 0) queues.set(id, left);
          else queues.delete(id);
        }
      }),
  };
}
