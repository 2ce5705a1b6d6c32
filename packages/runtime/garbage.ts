/** Memory that a process has needed once, for its start or for a request. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** So long after a start, which by then is over for the others, too. */
const AFTER_MS = 2_000;

/**
 * Has V8 make every object in the young generation, where it is soon collected. To be called before anything is compiled. Else
 * V8 notes which lines of code make what lives long, and makes that in the old generation at once. All objects of a request
 * know one another: one of them there, and the request as a whole is copied twice and kept until all memory is collected.
 */
export function allocateYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}

/** With these V8 drops what its first compiler made of bytecode, however lately it ran, and keeps the bytecode. */
const DROP_BASELINE_CODE = ["--flush-baseline-code", "--stress-flush-code", "--no-flush-bytecode"];
const AS_BEFORE = ["--no-flush-baseline-code", "--no-stress-flush-code", "--flush-bytecode"];

/**
 * Gives the memory of the start back to the system: of what a process allocates until it is ready, a quarter is needed
 * later, and V8 by itself collects the rest only when the process has been busy for long. It takes some 30 ms, once. What
 * was compiled for the start goes, too: most of it never runs again, and the rest is soon compiled from bytecode.
 */
export function collectAfterStart(): void {
  setTimeout(() => {
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as NonNullable<typeof globalThis.gc>;
    DROP_BASELINE_CODE.forEach(setFlagsFromString);
    try {
      // Of its kinds the one that leaves no free pages behind.
      gc({ type: "major", flavor: "last-resort" });
    } finally {
      AS_BEFORE.forEach(setFlagsFromString);
    }
  }, AFTER_MS).unref();
}
