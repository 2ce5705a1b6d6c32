/** Logs why access tokens were refused, in few lines: whoever sends them decides how many there are. */
import type { Runtime, WallTime } from "@petstore/runtime/clock";

const EVERY_MS = 60_000;

/**
 * Returns a function that counts a refusal. It logs the first for a reason at once, and later ones together, once a minute at
 * most. A reason is one of few sentences, and quotes nothing of the token.
 */
export function createRefusalLog({ wallClock, log }: Pick<Runtime, "log"> & WallTime): (reason: string) => void {
  const reasons = new Map<string, { readonly toldAt: number; refused: number }>();
  return (reason) => {
    const now = wallClock();
    const known = reasons.get(reason);
    if (known && Math.abs(now - known.toldAt) < EVERY_MS) known.refused++;
    else {
      log.warn({ reason, refused: (known?.refused ?? 0) + 1 }, "access tokens were refused");
      reasons.set(reason, { toldAt: now, refused: 0 });
    }
  };
}
