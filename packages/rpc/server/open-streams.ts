/** How many streams are open. They last, so what bounds short calls says nothing of them. */

export interface StreamLimits {
  /** Of one process. */
  readonly streams: number;
  /** Of these, of one caller. */
  readonly streamsPerCaller: number;
}

export const defaultStreamLimits: StreamLimits = { streams: 1_000, streamsPerCaller: 20 };

export interface OpenStreams {
  /**
   * Counts one more stream until what it gives back is called; where there is no place for it, says why, in words for its
   * caller. A caller without a name is one of the system's own processes, which has counted for whom it calls.
   */
  enter(caller: string | undefined): (() => void) | string;
}

export function createOpenStreams({ streams, streamsPerCaller }: StreamLimits): OpenStreams {
  const all = new Map<string | undefined, number>();
  let count = 0;
  return {
    enter(caller) {
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
