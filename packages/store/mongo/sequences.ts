/** Sequences. All numbers that are requested in one tick, or while a request is under way, are taken with one `$inc`. */
import { createBatcher } from "../engine/batcher.ts";
import type { EngineContext } from "../engine/context.ts";
import type { Database } from "./database.ts";
import { type Call, retryUntilDeadline, type Timing, withTimeout } from "./deadline.ts";

/** No collection of the port can have this name. */
const COLLECTION = "_sequences";

interface Waiting {
  readonly call: Call;
  readonly above: number;
  readonly resolve: (number: number) => void;
  readonly reject: (error: unknown) => void;
}

/** A number whose answer is lost is a gap, so a failed request is simply repeated. */
export function createSequences({ db, inSession }: Database, timing: Timing, log: EngineContext["log"]) {
  const counters = db.collection<{ _id: string; last: number }>(COLLECTION);
  /** The highest number of each sequence that this process has given. */
  const highest = new Map<string, number>();

  /** Takes `count` numbers that follow one another, all greater than `above`. Resolves to the number before them. */
  async function take(sequence: string, count: number, above: number): Promise<number> {
    const given = highest.get(sequence) ?? 0;
    const least = Math.max(given, above);
    // The same as $inc, but for a counter that was dropped or restored, or that others have gone beyond.
    const increment = [{ $set: { last: { $add: [{ $max: ["$last", least] }, count] } } }];
    const options = { upsert: true, returnDocument: "before" } as const;
    const found = await inSession((session) =>
      withTimeout("repeatable", counters.findOneAndUpdate({ _id: sequence }, increment, { ...options, session })),
    );
    const last = found?.last ?? 0;
    if (last < given)
      log.warn(`the sequence ${sequence} was dropped or restored: it goes on after ${given}, which was given already`);
    const before = Math.max(last, least);
    highest.set(sequence, before + count);
    return before;
  }

  const ask = createBatcher<string, Waiting>(async (sequence, asked) => {
    const waiting = asked.filter(({ call }) => !call.isOver);
    if (waiting.length === 0) return [];
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
      const above = Math.max(...waiting.map(({ above }) => above));
      const before = await retryUntilDeadline(all, timing, () => take(sequence, waiting.length, above));
      for (const [i, { resolve }] of waiting.entries()) resolve(before + 1 + i);
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
    return [];
  });

  return (sequence: string, call: Call, above = 0): Promise<number> => {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    ask(sequence, { call, above, resolve, reject });
    return promise;
  };
}
