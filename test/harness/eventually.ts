import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";

/** Time limit in milliseconds. Recovery workers run every two seconds, and the machine may be busy with other tests. */
const PATIENCE_MS = 60_000;

/**
 * Reads again, `pauseMs` after the time before, until it gets `wanted`; at the time limit fails, showing what it got instead.
 */
export async function eventually<T>(read: () => Promise<T>, wanted: T, pauseMs = 50): Promise<void> {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await read().catch((error: unknown) => ({ error }));
    const text = JSON.stringify(found);
    if (text === JSON.stringify(wanted)) return;
    if (Date.now() > until) return expect(found).toEqual(wanted);
    await sleep(pauseMs);
  }
}
