/** Clients that notice each failure, whether or not it is cured by sending again. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Door } from "./doors.ts";
import type { Operation } from "./operations.ts";
import type { Outcome } from "./perform.ts";

/** What the clients of one way in met. */
export function watched(door: Door, pause: () => Promise<void>) {
  const seen = { requests: 0, longestMs: 0, failures: [] as string[] };
  /** Only until the first failure is there anything to find out; then the others shall go on. */
  async function send(operation: Operation): Promise<Outcome> {
    for (;;) {
      await pause();
      const startedAt = performance.now();
      seen.requests++;
      const outcome = await door.send(operation).catch((error: unknown) => {
        seen.failures.push(`${new Date().toISOString()} ${operation.do}: ${told(error)}`);
      });
      seen.longestMs = Math.max(seen.longestMs, Math.round(performance.now() - startedAt));
      if (outcome) return outcome;
      await sleep(100);
    }
  }
  return { seen, send };
}

const told = (error: unknown): string =>
  error instanceof Error ? `${error.message} (${(error as NodeJS.ErrnoException).code ?? error.name})` : `${error}`;
