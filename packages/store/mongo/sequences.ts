/**
 * Sequences. Numbers are taken ahead, so that most are given at once: as many as were lately asked for while others were
 * being taken, one on a quiet petstore. All that are missing are taken with one command.
 *
 * Who lists by descending ids must not miss a record that gets an old number late. So a number that has been at hand for a
 * while is given only if nobody can have given a higher one.
 */
import type { ClientSession } from "mongodb";
import { createBatcher, type Waiting } from "../engine/batcher.ts";
import type { EngineContext } from "../open.ts";
import type { Database } from "./database.ts";
import { type Call, retryUntilDeadline, type Timing, withTimeout } from "./deadline.ts";

/** No collection of the port can have this name. */
const COLLECTION = "_sequences";
/** Most numbers that are taken ahead. */
const MAX_AHEAD = 256;
/** How long closing waits for the database, in milliseconds. */
const CLOSE_MS = 2_000;

interface Asked extends Waiting<number> {
  readonly call: Call;
}

interface Sequence {
  readonly name: string;
  readonly atHand: AtHand;
  /** The highest number that was taken here. */
  taken: number;
  /** How many to have at hand. */
  ahead: number;
  /** How many were asked for since a command was last sent. */
  asked: number;
  /** Resolves when no command is under way. */
  underWay: Promise<void>;
}

/** A number whose answer is lost is a gap, so a failed request is simply repeated. */
export function createSequences(
  { db, inSession }: Pick<Database, "db" | "inSession">,
  timing: Timing,
  log: Pick<EngineContext["log"], "warn">,
) {
  const { clock } = timing;
  const counters = db.collection<{ _id: string; last: number }>(COLLECTION);
  const sequences = new Map<string, Sequence>();
  let isClosing = false;

  function open(name: string): Sequence {
    const opened = { name, atHand: numbersAtHand(), taken: 0, ahead: 1, asked: 0, underWay: Promise.resolve() };
    sequences.set(name, opened);
    return opened;
  }

  const repeatably = <R>(command: (session: ClientSession) => Promise<R>): Promise<R> =>
    inSession((session) => withTimeout("repeatable", command(session)));

  async function take(sequence: Sequence, count: number): Promise<void> {
    const { name, atHand, taken } = sequence;
    const least = atHand.highest;
    // $inc, but for a counter that was dropped or restored, or that has to go on above a number that is in use.
    const increment = [{ $set: { last: { $add: [{ $max: ["$last", least] }, count] } } }];
    const options = { upsert: true, returnDocument: "before" } as const;
    const since = clock();
    sequence.asked = 0;
    const found = await repeatably((session) =>
      counters.findOneAndUpdate({ _id: name }, increment, { ...options, session }),
    );
    // As many again are asked for until the next command is answered. A third of them is for callers that come in bursts.
    sequence.ahead = Math.min(MAX_AHEAD, Math.max(1, 3 * sequence.asked));
    const last = found?.last ?? 0;
    if (last < taken)
      log.warn(`the sequence ${name} was dropped or restored: it goes on after ${taken}, which was taken already`);
    const before = Math.max(last, least);
    sequence.taken = before + count;
    atHand.add(before, count, since);
  }

  /** Serves those who wait, and sees to it that there are numbers for those who come. */
  async function serve(sequence: Sequence, waiting: Asked[]): Promise<void> {
    const { name, atHand } = sequence;
    const giveAll = () => {
      for (const { resolve } of waiting.splice(0, atHand.count)) resolve(atHand.give() as number);
    };
    const fill = async () => {
      if (atHand.isOld(clock())) {
        const counter = await repeatably((session) => counters.findOne({ _id: name }, { session }));
        atHand.confirm(counter?.last ?? 0, clock());
      }
      giveAll();
      do {
        const missing = waiting.length + sequence.ahead - atHand.count;
        if (missing > 0) await take(sequence, missing);
        giveAll();
      } while (waiting.length > 0);
    };
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
      await retryUntilDeadline(all, timing, fill);
    } catch (error) {
      // If nobody waits, whoever asks next finds out.
      for (const { reject } of waiting) reject(error);
    }
  }

  /** Without anybody who waits, only sees to it that there are numbers. */
  const enter = createBatcher<Sequence, Partial<Pick<Asked, "call">>, number>(async (sequence, asked) => {
    const waiting = asked.filter(({ call }) => call && !call.isOver) as Asked[];
    if (isClosing && waiting.length === 0) return [];
    sequence.underWay = serve(sequence, waiting);
    await sequence.underWay;
    return [];
  });

  async function giveBack({ name, atHand, underWay }: Sequence): Promise<void> {
    await underWay;
    const newest = atHand.newest();
    if (!newest) return;
    // Not repeated: others may have taken the same numbers once they were given back.
    await counters.updateOne({ _id: name, last: newest.last }, { $set: { last: newest.next - 1 } });
  }

  return {
    async next(name: string, call: Call, above = 0): Promise<number> {
      const sequence = sequences.get(name) ?? open(name);
      const { atHand } = sequence;
      sequence.asked++;
      atHand.drop(above);
      const number = atHand.isOld(clock()) ? undefined : atHand.give();
      if (number !== undefined) {
        // Nobody waits for this one, and nothing answers it.
        if (atHand.count < sequence.ahead) void enter(sequence, {});
        return number;
      }
      return enter(sequence, { call });
    },
    /** Gives back what is at hand, unless others have taken numbers above it. Must be the last call. */
    async close(): Promise<void> {
      isClosing = true;
      const all = Promise.all([...sequences.values()].map(giveBack));
      await withTimeout(CLOSE_MS, all).catch(() => {}); // a gap
    },
  };
}

/** How long a number may be at hand before it is asked whether others have given higher ones meanwhile, in milliseconds. */
const FRESH_MS = 10_000;

interface Range {
  next: number;
  last: number;
  /** When the first of them was taken. */
  readonly since: number;
}

/** Numbers of a sequence that this process has taken and not given yet. */
type AtHand = ReturnType<typeof numbersAtHand>;

export function numbersAtHand() {
  /** From the lowest to the highest. Between two of them others have taken numbers. */
  let ranges: Range[] = [];
  let highest = 0;
  return {
    /** The highest number that was taken, or that is known to be in use: what is taken now is above it. */
    get highest() {
      return highest;
    },
    get count() {
      return ranges.reduce((count, { next, last }) => count + last - next + 1, 0);
    },
    isOld: (now: number) => ranges[0] !== undefined && now - ranges[0].since >= FRESH_MS,
    /** The lowest; undefined if there is none. */
    give(): number | undefined {
      const [range] = ranges;
      if (!range) return undefined;
      const number = range.next++;
      if (number === range.last) ranges.shift();
      return number;
    },
    /** Adds the numbers that were taken: `count` of them, behind `before`. */
    add(before: number, count: number, now: number): void {
      // A higher number may have become known while these were taken.
      const next = Math.max(before, highest) + 1;
      const last = before + count;
      if (next > last) return;
      const newest = ranges.at(-1);
      if (newest?.last === next - 1) newest.last = last;
      else ranges.push({ next, last, since: now });
      highest = last;
    },
    drop(upTo: number): void {
      highest = Math.max(highest, upTo);
      ranges = ranges.filter(({ last }) => last > upTo);
      for (const range of ranges) range.next = Math.max(range.next, upTo + 1);
    },
    /**
     * Keeps the numbers than which nobody can have given a higher one, because the counter still stands at the last of
     * them, and drops all others.
     */
    confirm(counter: number, now: number): void {
      const newest = ranges.at(-1);
      ranges = newest?.last === counter ? [{ ...newest, since: now }] : [];
    },
    /** The numbers that nobody misses if the counter still stands at the last of them. */
    newest: (): Readonly<Range> | undefined => ranges.at(-1),
  };
}
