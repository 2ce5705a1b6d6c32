/**
 * Schedules turns. The next step of every simulated process waits here, and one at a time continues: so a schedule is a list
 * of choices, and the same choices give the same schedule. Time moves only on request, or when all processes sleep.
 */
import { setImmediate as tick } from "node:timers/promises";

/** The process that a turn belongs to. The turns of a dead process never come. */
export interface Owner {
  dead: boolean;
}

interface Waiting {
  readonly owner: Owner;
  readonly goOn: () => void;
  /** How often its turn has to come until it continues. */
  turns: number;
}

interface Sleeping extends Waiting {
  readonly until: number;
  /** Whether something else may wake it. */
  readonly canBeWoken: boolean;
}

/** Streams of changes are read in ticks of the event loop, not in turns: one comes after so many turns. */
const TURNS_PER_TICK = 4;
/** How many idle ticks mean that nothing is left to do. */
const TICKS = 10;

/** Much cheaper than a tick: Node runs it when all promises are done. */
const promisesDone = () => new Promise<void>((done) => process.nextTick(done));

/** `pick` chooses one of `waiting` tasks, from 0. */
export function createScheduler(pick: (waiting: number) => number) {
  let now = 1_800_000_000_000;
  let waiting: Waiting[] = [];
  let sleeping: Sleeping[] = [];

  /** Gives turns until one task continues; returns false if there is none. */
  function step(): boolean {
    waiting = waiting.filter(({ owner }) => !owner.dead);
    sleeping = sleeping.filter(({ owner }) => !owner.dead);
    waiting.push(...sleeping.filter(({ until }) => until <= now));
    sleeping = sleeping.filter(({ until }) => until > now);
    for (;;) {
      const next = waiting.splice(pick(waiting.length), 1)[0] ?? wakeFirst();
      if (!next) return false;
      next.turns--;
      if (next.turns <= 0) {
        next.goOn();
        return true;
      }
      waiting.push(next);
    }
  }

  function wakeFirst(): Waiting | undefined {
    const first = sleeping.filter(({ canBeWoken }) => !canBeWoken).toSorted((a, b) => a.until - b.until)[0];
    if (!first) return undefined;
    sleeping = sleeping.filter((other) => other !== first);
    now = Math.max(now, first.until);
    return first;
  }

  async function runTurns(isOver: () => boolean): Promise<void> {
    for (let idle = 0, turns = 0; idle < TICKS; idle = step() ? 0 : idle + 1) {
      await (idle > 0 || ++turns % TURNS_PER_TICK === 0 ? tick() : promisesDone());
      if (isOver()) return;
    }
  }

  return {
    clock: () => now,
    advance(ms: number): void {
      now += ms;
    },
    wait: (owner: Owner, turns = 1) =>
      turns < 1 ? Promise.resolve() : new Promise<void>((goOn) => void waiting.push({ owner, goOn, turns })),
    /** Sleeps. A signal rejects it, and with one, time does not move for it: what it waits for may never come. */
    sleep: (ms: number, owner: Owner, signal?: AbortSignal) =>
      new Promise<void>((goOn, reject) => {
        // Rounded up to a whole millisecond, as clocks show no fractions.
        const sleeper = { owner, goOn, turns: 1, until: now + Math.ceil(ms), canBeWoken: signal !== undefined };
        sleeping.push(sleeper);
        const wake = () => {
          sleeping = sleeping.filter((other) => other !== sleeper);
          reject(signal?.reason);
        };
        signal?.addEventListener("abort", wake, { once: true });
      }),

    /** Runs turns until the work is done, and no further. */
    async until<T>(work: Promise<T>): Promise<T> {
      let done = false;
      const mark = () => {
        done = true;
      };
      work.then(mark, mark);
      await runTurns(() => done);
      if (!done) throw new Error("Everybody waits, and the work is not done.");
      return work;
    },

    /** Runs turns until nothing is left to do. */
    untilIdle: () => runTurns(() => false),
  };
}
export type Turns = ReturnType<typeof createScheduler>;
