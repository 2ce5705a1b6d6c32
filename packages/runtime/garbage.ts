/** Freeing memory that a process needed only once, for its start or for a request. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** The delay after a start, in milliseconds; by then the other processes have started, too. */
const AFTER_MS = 2_000;

/**
 * Makes V8 allocate every object in the young generation, where it is soon collected. Must be called before anything is
 * compiled. Otherwise V8 learns which code allocates objects that live long, and allocates them in the old generation at
 * once. The objects of a request refer to one another: with one of them there, the whole request is copied twice and kept
 * until the next full collection.
 */
export function allocateYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}

/** With these flags a collection drops the code of V8's baseline compiler, however recently it ran, and keeps the bytecode. */
const DROP_BASELINE_CODE = ["--flush-baseline-code", "--stress-flush-code", "--no-flush-bytecode"];
const AS_BEFORE = ["--no-flush-baseline-code", "--no-stress-flush-code", "--flush-bytecode"];

/**
 * Returns the memory of the start to the system. Of what a process allocates until it is ready, a quarter is needed
 * later, and V8 by itself collects the rest only when the process has been busy for long. Takes some 30 ms, once. Code
 * that was compiled for the start is dropped, too: most of it never runs again, and the rest is soon compiled from
 * bytecode.
 */
export function collectAfterStart(): void {
  setTimeout(() => {
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as NonNullable<typeof globalThis.gc>;
    DROP_BASELINE_CODE.forEach(setFlagsFromString);
    try {
      // The only kind of collection that leaves no free pages behind.
      gc({ type: "major", flavor: "last-resort" });
    } finally {
      AS_BEFORE.forEach(setFlagsFromString);
    }
  }, AFTER_MS).unref();
}
