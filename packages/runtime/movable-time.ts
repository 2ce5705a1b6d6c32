/** Time that can be moved on, for programs that a test starts. */
import { realTime } from "./clock.ts";

export interface MovableTime extends Pick<typeof realTime, "clock" | "wallClock" | "random" | "sleep"> {
  /** Moves the clock on. What sleeps wakes up if its time has come. */
  advance(ms: number): void;
}

/** It begins at `now`, in milliseconds since 1970, and then goes on as the real one does. */
export function createMovableTime(now: number = realTime.clock()): MovableTime {
  let ahead = now - realTime.clock();
  let moved = new AbortController();
  const clock = () => realTime.clock() + ahead;
  return {
    clock,
    wallClock: clock,
    random: realTime.random,
    async sleep(ms, signal) {
      const until = clock() + ms;
      for (let left = ms; ; left = until - clock()) {
        const current = moved.signal;
        const woken = signal ? AbortSignal.any([signal, current]) : current;
        try {
          return await realTime.sleep(Math.max(0, left), woken);
        } catch (error) {
          if (!current.aborted) throw error;
        }
      }
    },
    advance(ms) {
      ahead += ms;
      const before = moved;
      moved = new AbortController();
      before.abort();
    },
  };
}
