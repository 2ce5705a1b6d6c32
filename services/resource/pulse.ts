/** One timer for all who wait for a time of their own: there may be a thousand of them, who mostly wait in vain. */
import type { Runtime } from "@petstore/runtime/clock";

export interface Pause {
  /** On the clock, in milliseconds. */
  dueAt: number;
  wake: () => void;
}

export interface Pulse {
  /** Wakes it when it is due, once. Its time may be moved on meanwhile. */
  wait(pause: Pause): void;
  leave(pause: Pause): void;
}

export function createPulse({ clock, sleep }: Pick<Runtime, "clock" | "sleep">): Pulse {
  const pauses = new Set<Pause>();
  let timer: { readonly at: number; readonly stop: AbortController } | undefined;

  function set(at: number): void {
    timer?.stop.abort();
    timer = undefined;
    if (at === Number.POSITIVE_INFINITY) return;
    const stop = new AbortController();
    timer = { at, stop };
    sleep(Math.max(0, at - clock()), stop.signal).then(ring, () => {}); // an aborted sleep rejects
  }

  function ring(): void {
    const now = clock();
    let next = Number.POSITIVE_INFINITY;
    for (const pause of pauses) {
      if (pause.dueAt > now) next = Math.min(next, pause.dueAt);
      else {
        pauses.delete(pause);
        pause.wake();
      }
    }
    set(next);
  }

  return {
    wait(pause) {
      pauses.add(pause);
      if (!timer || pause.dueAt < timer.at) set(pause.dueAt);
    },
    leave(pause) {
      if (pauses.delete(pause) && pauses.size === 0) set(Number.POSITIVE_INFINITY);
    },
  };
}
