/** Limits the number of open streams. They last, so the limits for short calls don't bound them. */

export interface StreamLimits {
  /** Streams of one process. */
  readonly streams: number;
  /** Streams of one caller. */
  readonly streamsPerCaller: number;
}

export const defaultStreamLimits: StreamLimits = { streams: 1_000, streamsPerCaller: 20 };

export function createOpenStreams({ streams, streamsPerCaller }: StreamLimits) {
  const all = new Map<string | undefined, number>();
  let count = 0;
  return {
    count: () => count,
    /**
     * Counts one more stream, and returns a function that stops counting it. If the limit is reached, returns a message for the
     * caller instead. An undefined `caller` is one of the system's own processes, which has counted its own callers.
     */
    enter(caller: string | undefined): (() => void) | string {
      const own = all.get(caller) ?? 0;
      if (caller !== undefined && own >= streamsPerCaller)
        return `There are ${own} streams open of this caller, as many as there may be. End one of them first.`;
      if (count >= streams) return `There are ${count} streams open, as many as there may be. Try again later.`;
      all.set(caller, own + 1);
      count++;
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        count--;
        const left = (all.get(caller) ?? 0) - 1;
        if (left > 0) all.set(caller, left);
        else all.delete(caller);
      };
    },
  };
}
