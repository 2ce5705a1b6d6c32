import type { Deps } from "./deps.ts";

/** Failures in a row that nobody need know of: at a start the others may not be up yet. */
const PATIENCE = 1;

/**
 * Runs a task at once and then about every `intervalMs` (a quarter more or less, so that processes started together
 * drift apart), one run at a time. A failure never ends it; it is logged when it is not the first in a row, and then once,
 * as is recovery. Disposing it waits for the run that is under way.
 */
export function every(
  intervalMs: number,
  name: string,
  task: () => Promise<unknown>,
  { sleep, random, log }: Pick<Deps, "sleep" | "random" | "log">,
): AsyncDisposable {
  const stop = new AbortController();

  async function run(): Promise<void> {
    let failures = 0;
    while (!stop.signal.aborted) {
      try {
        await task();
        if (failures > PATIENCE) log.info(`${name} works again`);
        failures = 0;
      } catch (err) {
        if (failures === PATIENCE) log.warn({ err }, `${name} failed again and will be tried further`);
        failures++;
      }
      // An aborted sleep rejects, and that is how it is meant to end.
      if (!stop.signal.aborted) await sleep(intervalMs * (0.75 + random() / 2), stop.signal).catch(() => {});
    }
  }

  const running = run();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}
