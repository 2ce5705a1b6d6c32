/** A directory, taken as a whole by whoever starts the processes that open its files. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreLocked } from "../port.ts";
import { isLocked, openFailure } from "./failures.ts";
import { makeDirectory } from "./file.ts";

/** How long to wait for the directory, in milliseconds: whoever took it a moment ago has time to say who it is. */
const BUSY_TIMEOUT_MS = 250;

/**
 * Takes the directory, and makes it if need be. It is free again when the result is disposed or this process ends, in
 * whatever way. `about` this process is told to others that try. Throws `StoreLocked` or `NotWritable`, with a message for the operator.
 */
export function takeDirectory(directory: string, about: string): Disposable {
  const note = join(directory, "launcher.pid");
  let lock: DatabaseSync | undefined;
  try {
    makeDirectory(directory);
    // An empty database, to which nothing is ever written: SQLite's locks are the system's, and end with their process.
    lock = new DatabaseSync(resolve(directory, "launcher.lock"), { timeout: BUSY_TIMEOUT_MS });
    lock.exec("BEGIN IMMEDIATE");
    writeFileSync(note, `${process.pid}\n${about}\n`);
    return lock;
  } catch (error) {
    lock?.close();
    if (!isLocked(error)) throw openFailure(error, directory);
    const who = existsSync(note) ? ` (process ${readFileSync(note, "utf8").trim().replace("\n", ", ")})` : "";
    throw new StoreLocked(
      `${directory} is in use by another petstore${who}: stop that one, or give this one a DATA_DIR and a PORT_BASE of its own.`,
      { cause: error },
    );
  }
}
