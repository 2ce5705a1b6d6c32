import type { Runtime } from "./clock.ts";

/** Whether this many failures in a row are logged. The first is not: at a start other processes may not be up yet. */
const isLogged = (failures: number): boolean => failures > 1 && Number.isInteger(Math.log2(failures));

/**
 * Runs a task at once and then about every `intervalMs` (a quarter more or less, so that processes started together
 * drift apart), one run at a time. A failure never ends it; the 2nd, 4th, 8th, ... in a row are logged, and recovery after
 * them. Disposing it tells the run that is under way to stop and waits for it.
 */
export function every(
  intervalMs: number,
  name: string,
  task: (stop: AbortSignal) => Promise<unknown>,
  { sleep, random, log }: Pick<Runtime, "sleep" | "random" | "log">,
): AsyncDisposable {
  const stop = new AbortController();

  async function run(): Promise<void> {
    let failures = 0;
    while (!stop.signal.aborted) {
      try {
        await task(stop.signal);
        if (failures > 1) log.info({ failures }, `${name} works again`);
        failures = 0;
      } catch (err) {
        if (isLogged(++failures)) log.warn({ err, failures }, `${name} failed again and will be tried further`);
      }
      // An aborted sleep rejects, which ends the loop.
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
