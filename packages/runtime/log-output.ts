/** Where a log goes: standard output, which never waits for its reader. */
import { destination as file } from "pino";

/** Bytes of lines that wait for a slow reader; what comes beyond them is dropped and counted. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** A pipe takes up to this many bytes whole or not at all (PIPE_BUF), so lines of processes that share one are never mixed. */
const MAX_WRITE_BYTES = 4096;
/** Pause before a reader that takes nothing is tried again. */
const RETRY_MS = 100;
/** Attempts at the end of the process, RETRY_MS apart, before what still waits is dropped. */
const LAST_RETRIES = 10;

export interface LogOutput {
  /** Writes a whole line, at once if it is urgent. Never waits and never throws. */
  write(line: string, urgent: boolean): void;
}

/**
 * Lines of one turn of the event loop are written together at its end, because a write costs as much as producing a line.
 * An urgent line is written at once, after those before it, so that it is not lost whatever ends the process. What the
 * reader does not take waits in memory. `lost` is called with the number of dropped lines as soon as lines can be written
 * again.
 */
export function standardOutput(lost: (lines: number) => void): LogOutput {
  let hasFailed = false;
  let willRetry = false;
  let dropped = 0;
  let ofThisTurn = "";
  const output = file({
    fd: process.stdout.fd, // once Node has opened it, a full pipe refuses (EAGAIN) instead of blocking
    sync: true,
    minLength: 1,
    maxLength: MAX_WAITING_BYTES,
    maxWrite: MAX_WRITE_BYTES,
    retryEAGAIN: () => false, // its own retry would block the process
  });
  function flush(): boolean {
    hasFailed = willRetry = false;
    output.flush();
    if (hasFailed) return false;
    if (dropped > 0) lost(dropped);
    dropped = 0;
    return true;
  }
  function retry(): void {
    if (!willRetry) setTimeout(flush, RETRY_MS).unref();
    willRetry = true;
  }
  // A full disk, or a reader that has gone, must not end the process either.
  output.on("error", () => {
    hasFailed = true;
    retry();
  });
  output.on("drop", (lines: string) => {
    dropped += lines.split("\n").length - 1;
    retry();
  });
  function pass(): void {
    const lines = ofThisTurn;
    ofThisTurn = "";
    if (lines !== "") output.write(lines);
  }
  process.once("exit", () => {
    pass();
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (let i = 0; i < LAST_RETRIES && !flush(); i++) Atomics.wait(pause, 0, 0, RETRY_MS);
  });
  return {
    write(line, urgent) {
      if (ofThisTurn.length + line.length > MAX_WRITE_BYTES) pass();
      if (ofThisTurn === "") setImmediate(pass).unref();
      ofThisTurn += line;
      if (urgent) pass();
    },
  };
}
