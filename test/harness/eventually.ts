import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";

/** Longest that anything may be unfinished. Recovery workers run every two seconds; the machine may be busy with other tests. */
const PATIENCE_MS = 60_000;

/** Reads again until it finds what is wanted, or fails showing what it found instead. */
export async function eventually<T>(read: () => Promise<T>, wanted: T): Promise<void> {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await read().catch((error: unknown) => ({ error }));
    const text = JSON.stringify(found);
    if (text === JSON.stringify(wanted)) return;
    if (Date.now() > until) return expect(found).toEqual(wanted);
    await sleep(50);
  }
}
