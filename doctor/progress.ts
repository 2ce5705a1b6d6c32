/** Shows on standard error how far a look has come, once it takes longer than two seconds. */
import type { OnProgress } from "./reading.ts";

const AFTER_MS = 2_000;
/** How often the line of a terminal changes, and how often another line is written elsewhere. In milliseconds. */
const TERMINAL_MS = 200;
const ELSEWHERE_MS = 5_000;

export interface Progress extends Disposable {
  readonly note: OnProgress;
}

export function showProgress(stream: NodeJS.WriteStream, clock: () => number): Progress {
  const begun = clock();
  let last = Number.NEGATIVE_INFINITY;
  const [before, after] = stream.isTTY ? ["\r\x1b[K", ""] : ["", "\n"];
  return {
    note(text) {
      const now = clock();
      if (now < begun + AFTER_MS || now < last + (stream.isTTY ? TERMINAL_MS : ELSEWHERE_MS)) return;
      last = now;
      stream.write(`${before}looking: ${text}${after}`);
    },
    [Symbol.dispose]: () => void (stream.isTTY && last > begun && stream.write(before)),
  };
}
