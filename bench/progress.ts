/** Says how far a run is: bars on a terminal, and elsewhere a line now and then. All on standard error. */
import progressBars from "cli-progress";

export interface Bar extends Disposable {
  /** So many steps are done; `what` is being done now. */
  step(done: number, what?: string): void;
}

export interface Progress {
  say(text: string): void;
  bar(title: string, total: number): Bar;
}

/** In place of what was shown before, on a terminal; nothing for an empty text. */
export function showStatus(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

const FORMAT = "{title} |{bar}| {percentage}%, {eta_formatted} left: {what}";

export function createProgress(): Progress {
  const say = (text: string) => void process.stderr.write(`${text}\n`);
  return {
    say,
    bar(title, total) {
      const bar = new progressBars.SingleBar({
        format: FORMAT,
        stream: process.stderr,
        noTTYOutput: true,
        notTTYSchedule: 30_000,
        etaBuffer: 50,
        // Before a step was done the library formats a word as if it were a number.
        formatTime: (left, ...more) =>
          Number.isFinite(left) ? progressBars.Format.TimeFormat(left, ...more) : "unknown time",
      });
      bar.start(total, 0, { title, what: "" });
      return {
        step: (done, what) => bar.increment(done, what === undefined ? {} : { what }),
        [Symbol.dispose]: () => bar.stop(),
      };
    },
  };
}
