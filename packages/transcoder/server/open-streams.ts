/** The streams that a server has open, so that it can end them when it closes. */

export type OpenStreams = ReturnType<typeof openStreams>;

export function openStreams() {
  const all = new Set<() => void>();
  let isOver = false;
  let allOut = () => {};
  const out = new Promise<void>((resolve) => {
    allOut = resolve;
  });
  const resolveIfEnded = () => isOver && all.size === 0 && allOut();
  return {
    /** `end` ends the stream. Returns a function to call when its answer has been sent. */
    add(end: () => void): () => void {
      all.add(end);
      if (isOver) end();
      return () => {
        all.delete(end);
        resolveIfEnded();
      };
    },
    /** Ends all streams, and those that are added later. Resolves when all answers have been sent. */
    end(): Promise<void> {
      isOver = true;
      for (const end of all) end();
      resolveIfEnded();
      return out;
    },
    isOver: () => isOver,
  };
}
