/** Shows on standard error how far something is: on a terminal in one line, else in a line now and then. */

const EVERY_MS = { terminal: 200, else: 10_000 };

export interface Progress extends Disposable {
  /** Adds what was done. */
  add(count: number): void;
}

/** `unit`: what is counted, such as "records". */
export function showProgress(title: string, total: number, unit: "records" | "bytes"): Progress {
  const { stderr } = process;
  const startedAt = performance.now();
  let [done, shownAt, shown] = [0, startedAt, false];

  function show(end: string): void {
    const seconds = (performance.now() - startedAt) / 1000;
    const part = total > 0 ? Math.min(1, done / total) : 1;
    const bar = "#".repeat(Math.round(20 * part)).padEnd(20, ".");
    const left = done > 0 ? `${Math.ceil((seconds / part) * (1 - part))} s left` : "";
    const line = `${title} |${bar}| ${Math.floor(100 * part)}%, ${inUnits(done / seconds, unit)}/s, ${left}`;
    stderr.write(stderr.isTTY ? `\r\x1b[K${line.slice(0, stderr.columns - 1)}${end}` : `${line}\n`);
    shown = true;
  }

  return {
    add(count) {
      done += count;
      const now = performance.now();
      if (now - shownAt < (stderr.isTTY ? EVERY_MS.terminal : EVERY_MS.else)) return;
      shownAt = now;
      show("");
    },
    [Symbol.dispose]() {
      if (shown) show("\n");
    },
  };
}

const inUnits = (count: number, unit: "records" | "bytes"): string =>
  unit === "bytes" ? `${(count / 2 ** 20).toFixed(1)} MiB` : `${Math.round(count)} records`;
