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

/** `pick` chooses one of so many. */
export function createScheduler(pick: (waiting: number) => number) {
  let now = 1_800_000_000_000;
  let waiting: Waiting[] = [];
  let sleeping: (Waiting & { readonly until: number })[] = [];

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
    const first = sleeping.toSorted((a, b) => a.until - b.until)[0];
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
    sleep: (ms: number, owner: Owner) =>
      // To the next whole millisecond, as clocks show no others.
      new Promise<void>((goOn) => void sleeping.push({ owner, goOn, until: now + Math.ceil(ms) })),

    /** Goes on until the work is done, and no further. */
    async until<T>(work: Promise<T>): Promise<T> {
      let done = false;
      const mark = () => {
        done = true;
      };
      work.then(mark, mark);
      for (;;) {
        await microtasksDone();
        if (done) return work;
        if (!step()) throw new Error("Everybody waits, and the work is not done.");
      }
    },

    /** Goes on until nobody has anything left to do. */
    async untilIdle(): Promise<void> {
      do await microtasksDone();
      while (step());
    },
  };
}
export type Turns = ReturnType<typeof createScheduler>;
