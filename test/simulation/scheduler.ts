/**
 * Taking turns. Whatever a simulated process does next waits here, and one at a time goes on: so a schedule is a list of
 * choices, and the same choices make the same schedule. Time moves when it is told to, or when everybody sleeps.
 */
import { setImmediate as microtasksDone } from "node:timers/promises";

/** Whose turn it is. What belongs to the dead never goes on. */
export interface Owner {
  dead: boolean;
}

interface Waiting {
  readonly owner: Owner;
  readonly goOn: () => void;
}

interface Sleeping extends Waiting {
  readonly until: number;
  /** Somebody else may wake it. */
  readonly canBeWoken: boolean;
}

/** Before nobody goes on, so many ticks of the event loop pass: streams of changes are read in ticks, not in turns. */
const TICKS = 10;

/** `pick` chooses one of so many. */
export function createScheduler(pick: (waiting: number) => number) {
  let now = 1_800_000_000_000;
  let waiting: Waiting[] = [];
  let sleeping: Sleeping[] = [];

  /** Lets one go on; false when there is nobody. */
  function step(): boolean {
    waiting = waiting.filter(({ owner }) => !owner.dead);
    sleeping = sleeping.filter(({ owner }) => !owner.dead);
    waiting.push(...sleeping.filter(({ until }) => until <= now));
    sleeping = sleeping.filter(({ until }) => until > now);
    const next = waiting.splice(pick(waiting.length), 1)[0] ?? wakeFirst();
    next?.goOn();
    return next !== undefined;
  }

  function wakeFirst(): Waiting | undefined {
    const first = sleeping.filter(({ canBeWoken }) => !canBeWoken).toSorted((a, b) => a.until - b.until)[0];
    if (!first) return undefined;
    sleeping = sleeping.filter((other) => other !== first);
    now = Math.max(now, first.until);
    return first;
  }

  return {
    clock: () => now,
    advance(ms: number): void {
      now += ms;
    },
    wait: (owner: Owner) => new Promise<void>((goOn) => void waiting.push({ owner, goOn })),
    /** With a signal, which rejects it, time does not move on its account: what it waits for may never come. */
    sleep: (ms: number, owner: Owner, signal?: AbortSignal) =>
      new Promise<void>((goOn, reject) => {
        // To the next whole millisecond, as clocks show no others.
        const sleeper = { owner, goOn, until: now + Math.ceil(ms), canBeWoken: signal !== undefined };
        sleeping.push(sleeper);
        const wake = () => {
          sleeping = sleeping.filter((other) => other !== sleeper);
          reject(signal?.reason);
        };
        signal?.addEventListener("abort", wake, { once: true });
      }),

    /** Goes on until the work is done, and no further. */
    async until<T>(work: Promise<T>): Promise<T> {
      let done = false;
      const mark = () => {
        done = true;
      };
      work.then(mark, mark);
      for (let idle = 0; idle < TICKS; idle = step() ? 0 : idle + 1) {
        await microtasksDone();
        if (done) return work;
      }
      throw new Error("Everybody waits, and the work is not done.");
    },

    /** Goes on until nobody has anything left to do. */
    async untilIdle(): Promise<void> {
      for (let idle = 0; idle < TICKS; idle = step() ? 0 : idle + 1) await microtasksDone();
    },
  };
}
export type Turns = ReturnType<typeof createScheduler>;
