/** Time, randomness and the log, which a process passes to everything that it builds, and work that is repeated by them. */
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";

/** Whole milliseconds since 1970 that never run backwards within a process. For deadlines, schedules and expiry. */
export type Clock = () => number;

/** Uniform in [0, 1). */
export type Random = () => number;

/** What an entry file builds takes time, randomness and pauses from here, so that a test can replace them. */
export interface Runtime {
  readonly clock: Clock;
  readonly random: Random;
  /** Resolves after so many milliseconds, or rejects when the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly log: Logger;
}

/**
 * In addition to a `Runtime`: the system's time in milliseconds since 1970. It may run backwards, and goes on while the machine
 * sleeps. For people to read, and to compare with a time that was recorded elsewhere.
 */
export type WallTime = { readonly wallClock: () => number };

// Whole milliseconds: they are stored in documents and sent as timeouts, where fractions are not allowed.
const clock: Clock = () => Math.floor(performance.timeOrigin + performance.now());

/** Milliseconds since the process began, with their fractions: to measure how long something takes. */
export const stopwatch = (): number => performance.now();

const sleep: Runtime["sleep"] = (ms, signal) => delay(ms, undefined, { signal });

/** Real time and randomness, for entry files. */
export const realTime = { clock, wallClock: () => Date.now(), random: Math.random, sleep } satisfies Partial<Runtime> &
  WallTime;

/** Time that can be moved on, for programs that a test starts. It begins at `now`, and then goes on as the real one does. */
export function createMovableTime(now = clock()) {
  let ahead = now - clock();
  let moved = new AbortController();
  const movedClock = () => clock() + ahead;
  return {
    clock: movedClock,
    wallClock: movedClock,
    random: Math.random,
    async sleep(ms: number, signal?: AbortSignal): Promise<void> {
      const until = movedClock() + ms;
      for (let left = ms; ; left = until - movedClock()) {
        const current = moved.signal;
        const woken = signal ? AbortSignal.any([signal, current]) : current;
        try {
          return await sleep(Math.max(0, left), woken);
        } catch (error) {
          if (!current.aborted) throw error;
        }
      }
    },
    /** Moves the clock on. What sleeps wakes up if its time has come. */
    advance(ms: number): void {
      ahead += ms;
      const before = moved;
      moved = new AbortController();
      before.abort();
    },
  };
}

/** The largest seed: greater ones draw the same as smaller ones. */
export const MAX_SEED = 2 ** 32 - 1;

/** Mulberry32: small, fast, and the same for the same seed everywhere. Uniform in [0, 1). */
export function seededRandom(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Whether this many failures in a row are logged. The first is not: at a start other processes may not be up yet. */
const isLogged = (failures: number): boolean => failures > 1 && Number.isInteger(Math.log2(failures));

/**
 * Runs a task at once and then about every `intervalMs` (a quarter more or less, so that processes started together
 * drift apart), one run at a time. A failure never ends it; the 2nd, 4th, 8th, ... in a row are logged, and recovery after
 * them. Disposing it tells the run that is under way to stop and waits for it.
 */
export function every(
  intervalMs: number,
  name: string,
  task: (stop: AbortSignal) => Promise<unknown>,
  { sleep, random, log }: Pick<Runtime, "sleep" | "random" | "log">,
): AsyncDisposable {
  const stop = new AbortController();

  async function run(): Promise<void> {
    let failures = 0;
    while (!stop.signal.aborted) {
      try {
        await task(stop.signal);
        if (failures > 1) log.info({ failures }, `${name} works again`);
        failures = 0;
      } catch (err) {
        if (isLogged(++failures)) log.warn({ err, failures }, `${name} failed again and will be tried further`);
      }
      // An aborted sleep rejects, which ends the loop.
      if (!stop.signal.aborted) await sleep(intervalMs * (0.75 + random() / 2), stop.signal).catch(() => {});
    }
  }

  const running = run();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}
