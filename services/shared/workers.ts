import type { Deps } from "./deps.ts";

export interface Worker extends AsyncDisposable {
  /** Runs the task now, or once more right after the run that is under way. */
  wake(): void;
}

/**
 * Runs a task at once and then about every `intervalMs` (a quarter more or less, so that processes started together
 * drift apart), one run at a time. A failure is logged when it is new and never ends the worker. Disposing it aborts the
 * task's signal and waits for the run that is under way.
 */
export function every(
  intervalMs: number,
  name: string,
  task: (signal: AbortSignal) => Promise<unknown>,
  { sleep, random, log }: Pick<Deps, "sleep" | "random" | "log">,
): Worker {
  const stop = new AbortController();
  let woken = Promise.withResolvers<void>();

  async function run(): Promise<void> {
    let failing = false;
    while (!stop.signal.aborted) {
      woken = Promise.withResolvers();
      try {
        await task(stop.signal);
        if (failing) log.info(`${name} works again`);
        failing = false;
      } catch (err) {
        if (!failing && !stop.signal.aborted) log.warn({ err }, `${name} failed and will be tried again`);
        failing = true;
      }
      if (!stop.signal.aborted) await pause(intervalMs * (0.75 + random() / 2));
    }
  }

  async function pause(ms: number): Promise<void> {
    const awake = new AbortController();
    const aborted = AbortSignal.any([stop.signal, awake.signal]);
    // An aborted sleep rejects, and that is how it is meant to end.
    await Promise.race([woken.promise, sleep(ms, aborted).catch(() => {})]);
    awake.abort();
  }

  const running = run();
  return {
    wake: () => woken.resolve(),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}
