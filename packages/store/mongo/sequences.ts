/** Sequences. All numbers that are requested in one tick, or while a request is under way, are taken with one `$inc`. */
import { createBatcher } from "../engine/batcher.ts";
import type { EngineContext } from "../engine/context.ts";
import type { Database } from "./database.ts";
import { type Call, retryUntilDeadline, type Timing, withTimeout } from "./deadline.ts";

/** No collection of the port can have this name. */
const COLLECTION = "_sequences";

interface Waiting {
  readonly call: Call;
  readonly resolve: (number: number) => void;
  readonly reject: (error: unknown) => void;
}

/** A number whose answer is lost is a gap, so a failed request is simply repeated. */
export function createSequences({ db, inSession }: Database, timing: Timing, log: EngineContext["log"]) {
  const sequences = db.collection<{ _id: string; last: number }>(COLLECTION);
  /** The highest number of each sequence that this process has given. */
  const highest = new Map<string, number>();

  async function take(sequence: string, count: number): Promise<number> {
    const options = { upsert: true, returnDocument: "after" } as const;
    const counted = await inSession((session) => {
      const increment = { $inc: { last: count } };
      return withTimeout(
        "repeatable",
        sequences.findOneAndUpdate({ _id: sequence }, increment, { ...options, session }),
      );
    });
    const last = counted?.last ?? Number.NaN;
    const given = highest.get(sequence) ?? 0;
    if (last - count >= given) {
      highest.set(sequence, last);
      return last - count;
    }
    log.warn(`the sequence ${sequence} was dropped or restored: it goes on after ${given}, which was given already`);
    await withTimeout("repeatable", sequences.updateOne({ _id: sequence }, { $max: { last: given } }));
    return take(sequence, count);
  }

  const ask = createBatcher<string, Waiting>(async (sequence, asked) => {
    const waiting = asked.filter(({ call }) => !call.isOver);
    const all: Omit<Call, "remaining"> = {
      get isOver() {
        return waiting.every(({ call }) => call.isOver);
      },
      inDoubt: false,
      set failure(error: unknown) {
        for (const { call } of waiting) call.failure = error;
      },
    };
    try {
      const before = await retryUntilDeadline(all, timing, () => take(sequence, waiting.length));
      for (const [i, { resolve }] of waiting.entries()) resolve(before + 1 + i);
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
    return [];
  });

  return (sequence: string, call: Call): Promise<number> => {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    ask(sequence, { call, resolve, reject });
    return promise;
  };
}
