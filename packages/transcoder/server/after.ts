/** Runs `work` after so many milliseconds. Returns a function that cancels it. */
export type After = (ms: number, work: () => void) => () => void;

export const after: After = (ms, work) => {
  const timer = setTimeout(work, ms);
  return () => clearTimeout(timer);
};
