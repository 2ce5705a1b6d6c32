/** Shows on standard error how far something is, once it takes longer than two seconds. */

const AFTER_MS = 2_000;
/** How often the line of a terminal changes, and how often another line is written elsewhere. In milliseconds. */
const TERMINAL_MS = 200;
const ELSEWHERE_MS = 5_000;

/** Called with what is done so far. */
export type OnProgress = (text: string) => void;

export function showProgress(
  stream: NodeJS.WriteStream,
  clock: () => number,
): Disposable & { readonly note: OnProgress } {
  const begun = clock();
  let last = Number.NEGATIVE_INFINITY;
  const [before, after] = stream.isTTY ? ["\r\x1b[K", ""] : ["", "\n"];
  return {
    note(text) {
      const now = clock();
      if (now < begun + AFTER_MS || now < last + (stream.isTTY ? TERMINAL_MS : ELSEWHERE_MS)) return;
      last = now;
      stream.write(`${before}${text.slice(0, stream.isTTY ? stream.columns - 1 : undefined)}${after}`);
    },
    [Symbol.dispose]: () => void (stream.isTTY && last > begun && stream.write(before)),
  };
}
