/** Has work done after so many milliseconds. Gives back what takes that back. */
export type After = (ms: number, work: () => void) => () => void;

export const after: After = (ms, work) => {
  const timer = setTimeout(work, ms);
  return () => clearTimeout(timer);
};
