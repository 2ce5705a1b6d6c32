/**
 * Sequences: all numbers that are asked for in one tick, or while a request is under way, come with one `$inc`. Numbers
 * that need not be higher than those of other processes are taken ahead as well: twice as many as were asked for lately.
 */
import { createBatcher } from "../engine/batcher.ts";
import type { NextIdOptions } from "../port.ts";
import type { Database } from "./database.ts";
import { type Call, retryUntilDeadline, type Timing, withTimeout } from "./deadline.ts";

/** No collection of the port can have this name. */
const COLLECTION = "_sequences";

/** How many are taken ahead at most, and for how long: what is left then is a gap. */
const MAX_AHEAD = 64;
const AHEAD_MS = 1_000;

interface Waiting {
  readonly call: Call;
  readonly ahead: boolean;
  readonly resolve: (number: number) => void;
  readonly reject: (error: unknown) => void;
}

/** Numbers that were taken ahead, all higher than those that this process has given before. */
interface Block {
  next: number;
  readonly last: number;
  readonly takenAt: number;
  /** Numbers that were asked for since, of those that may be taken ahead. */
  asked: number;
}

/** A number whose answer is lost is a gap, so a request that failed is simply made again. */
export function createSequences({ db, inSession }: Pick<Database, "db" | "inSession">, timing: Timing) {
  const sequences = db.collection<{ _id: string; last: number }>(COLLECTION);
  const blocks = new Map<string, Block>();

  const isRecent = ({ takenAt }: Block) => timing.clock() - takenAt < AHEAD_MS;

  /** One that was taken ahead. */
  function fromBlock(sequence: string): number | undefined {
    const block = blocks.get(sequence);
    return block && block.next <= block.last && isRecent(block) ? block.next++ : undefined;
  }

  async function take(sequence: string, count: number): Promise<number> {
    const options = { upsert: true, returnDocument: "after" } as const;
    const counted = await inSession((session) => {
      const increment = { $inc: { last: count } };
      return withTimeout(
        "repeatable",
        sequences.findOneAndUpdate({ _id: sequence }, increment, { ...options, session }),
      );
    });
    return (counted?.last ?? Number.NaN) - count;
  }

  async function takeFor(sequence: string, waiting: readonly Waiting[]): Promise<void> {
    const all: Call = {
      get isOver() {
        return waiting.every(({ call }) => call.isOver);
      },
      inDoubt: false,
      set failure(error: unknown) {
        for (const { call } of waiting) call.failure = error;
      },
    };
    const block = blocks.get(sequence);
    const ahead = block && isRecent(block) ? Math.min(2 * block.asked, MAX_AHEAD) : 0;
    try {
      const before = await retryUntilDeadline(all, timing, () => take(sequence, waiting.length + ahead));
      const given = before + waiting.length;
      blocks.set(sequence, { next: given + 1, last: given + ahead, takenAt: timing.clock(), asked: 0 });
      for (const [i, { resolve }] of waiting.entries()) resolve(before + 1 + i);
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }

  const ask = createBatcher<string, Waiting>(async (sequence, asked) => {
    const waiting = asked.filter(({ call, ahead, resolve }) => {
      if (call.isOver) return false;
      const number = ahead ? fromBlock(sequence) : undefined;
      if (number !== undefined) resolve(number);
      return number === undefined;
    });
    if (waiting.length > 0) await takeFor(sequence, waiting);
    return [];
  });

  return (sequence: string, call: Call, { ahead = false }: NextIdOptions = {}): Promise<number> => {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const block = ahead ? blocks.get(sequence) : undefined;
    if (block) block.asked++;
    const number = ahead ? fromBlock(sequence) : undefined;
    if (number === undefined) ask(sequence, { call, ahead, resolve, reject });
    else resolve(number);
    return promise;
  };
}
