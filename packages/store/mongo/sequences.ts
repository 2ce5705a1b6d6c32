/** Sequences: all numbers that are asked for in one turn, or while a request is under way, come with one `$inc`. */
import type { Database } from "./database.ts";
import { type Limit, persist, type Timing, unlessLost } from "./deadline.ts";

/** No collection of the port can have this name. */
const COLLECTION = "_sequences";

interface Waiting {
  readonly limit: Limit;
  readonly resolve: (number: number) => void;
  readonly reject: (error: unknown) => void;
}

/** A number whose answer is lost is a gap, so a request that failed is simply made again. */
export function createSequences({ db, inSession }: Database, timing: Timing) {
  const sequences = db.collection<{ _id: string; last: number }>(COLLECTION);
  const queues = new Map<string, Waiting[]>();

  async function take(sequence: string, count: number): Promise<number> {
    const options = { upsert: true, returnDocument: "after" } as const;
    const counted = await inSession((session) => {
      const increment = { $inc: { last: count } };
      return unlessLost(
        "repeatable",
        sequences.findOneAndUpdate({ _id: sequence }, increment, { ...options, session }),
      );
    });
    return (counted?.last ?? Number.NaN) - count;
  }

  async function serve(sequence: string, queue: Waiting[]): Promise<void> {
    while (queue.length > 0) {
      const waiting = queue.splice(0).filter(({ limit }) => !limit.isOver);
      const all: Limit = {
        get isOver() {
          return waiting.every(({ limit }) => limit.isOver);
        },
        inDoubt: false,
        set failure(error: unknown) {
          for (const { limit } of waiting) limit.failure = error;
        },
      };
      try {
        const before = await persist(all, timing, () => take(sequence, waiting.length));
        for (const [i, { resolve }] of waiting.entries()) resolve(before + 1 + i);
      } catch (error) {
        for (const { reject } of waiting) reject(error);
      }
    }
    queues.delete(sequence);
  }

  return (sequence: string, limit: Limit): Promise<number> => {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const waiting = { limit, resolve, reject };
    const queue = queues.get(sequence);
    if (queue) queue.push(waiting);
    else {
      const opened = [waiting];
      queues.set(sequence, opened);
      setImmediate(() => void serve(sequence, opened));
    }
    return promise;
  };
}
