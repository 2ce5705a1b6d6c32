/** Shows how much of something is done, and how long the rest takes. */
import * as shared from "../processes/progress.ts";

export interface Progress extends Disposable {
  add(count: number): void;
}

/** `sizes`: how much there is, in all of its parts. */
export function showProgress(title: string, sizes: readonly number[], unit: "records" | "bytes"): Progress {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const startedAt = performance.now();
  const shown = shared.showProgress(process.stderr, () => performance.now());
  let done = 0;

  function text(): string {
    const seconds = (performance.now() - startedAt) / 1000;
    const part = total > 0 ? Math.min(1, done / total) : 1;
    const left = done > 0 ? `${Math.ceil((seconds / part) * (1 - part))} s left` : "";
    return `${title}: ${Math.floor(100 * part)}%, ${inUnits(done / seconds, unit)}/s, ${left}`;
  }

  return {
    add(count) {
      done += count;
      shown.note(text());
    },
    [Symbol.dispose]: shown[Symbol.dispose],
  };
}

const inUnits = (count: number, unit: "records" | "bytes"): string =>
  unit === "bytes" ? `${(count / 2 ** 20).toFixed(1)} MiB` : `${Math.round(count)} records`;
