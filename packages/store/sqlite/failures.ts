/** What failures of SQLite and of the file system mean, to the operator and to callers. */
import { basename, dirname } from "node:path";
import { Corrupt, NotWritable, StoreLocked, Unavailable } from "../port.ts";

/** The result codes of SQLite that an operator can do something about. https://sqlite.org/rescode.html */
const LOCKED = new Set([5, 6]);
const DAMAGED = new Set([11, 26]);
const FULL = 13;

/** SQLite's primary result code, or `undefined` for an error that is not SQLite's. */
const resultCode = (error: unknown): number | undefined =>
  error instanceof Error && "errcode" in error && typeof error.errcode === "number" ? error.errcode & 0xff : undefined;

/**
 * True when there was no room for a transaction. It had no effect then: what it wrote to the log lacks the commit mark. A
 * failed write of any other kind (a quota, a disk that is read-only now) can't be distinguished from a broken disk.
 */
export const isFull = (error: unknown): boolean => resultCode(error) === FULL;

/** True when another connection has the lock that is needed. */
export const isLocked = (error: unknown): boolean => LOCKED.has(resultCode(error) ?? 0);

/** Why opening failed, in words for the operator. Errors that are neither the system's nor SQLite's stay as they are. */
export function openFailure(error: unknown, path: string): unknown {
  const code = resultCode(error);
  const isSystemError = error instanceof Error && "syscall" in error;
  if (code === undefined && !isSystemError) return error;
  if (isLocked(error)) {
    return new StoreLocked(
      `${dirname(path)} is in use by another process (${basename(path)} is locked): ` +
        "stop that petstore, or set DATA_DIR to another directory.",
      { cause: error },
    );
  }
  if (code !== undefined && DAMAGED.has(code)) return damaged(path, error);
  return new NotWritable(
    `${path} can't be written (${error instanceof Error ? error.message : error}): ` +
      "make room, allow writing there, or set DATA_DIR to another directory.",
    { cause: error },
  );
}

const damaged = (path: string, cause: unknown) =>
  new Corrupt(`${path} is damaged or not a database: restore a backup, or set DATA_DIR to another directory.`, {
    cause,
  });

/** What a failed read of the file means to the caller; errors that are not SQLite's stay as they are. */
export function readFailure(error: unknown, path: string): unknown {
  const code = resultCode(error);
  if (code === undefined) return error;
  return DAMAGED.has(code) ? damaged(path, error) : new Unavailable(false, error);
}
