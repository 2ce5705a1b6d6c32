/** Shows the progress of a run on standard error: bars on a terminal, else a line now and then. */
import progressBars from "cli-progress";

export interface Bar extends Disposable {
  /** Adds completed steps; `what` is done next. */
  step(done: number, what?: string): void;
}

export interface Progress {
  say(text: string): void;
  bar(title: string, total: number): Bar;
}

/** Replaces the status line of a terminal; an empty text clears it. */
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
        // Before the first step the library passes a word and formats it like a number.
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
