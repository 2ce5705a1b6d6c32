/** The files of the embedded engine while no petstore has them open, and copies of them. */
import { randomBytes } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { Corrupt } from "../port.ts";
import { COMPLETE, checkComplete } from "./checkpoints.ts";
import { openFailure } from "./failures.ts";
import { INCOMING, identify, logOf, openFile } from "./file.ts";
import { carriedIdentity, checkBeside, FILE as IDENTITY } from "./identity.ts";

export { FORMAT } from "./file.ts";
export { recordsIn } from "./inspection.ts";
export { IDENTITY, INCOMING };

const PAGES = 1_000;

/** A file as it was left, which no other process can open until it is closed. Throws as `openFile` does. */
export function openAtRest(path: string): DatabaseSync {
  let db: DatabaseSync | undefined;
  try {
    if (!existsSync(path)) throw new Corrupt(`${path} is not there.`);
    db = new DatabaseSync(path);
    const hasLog = (statSync(logOf(db), { throwIfNoEntry: false })?.size ?? 0) > 0;
    db.exec("PRAGMA locking_mode = EXCLUSIVE");
    identify(db, path);
    // Closing takes in the log, and the file must not say any more that it needs that.
    if (hasLog) db.exec(`BEGIN IMMEDIATE; ${COMPLETE} COMMIT`);
    else checkComplete(db, path);
    return db;
  } catch (error) {
    db?.close();
    throw openFailure(error, path);
  }
}

/** Copies an open file. `progress` is told how much of it is copied, from 0 to 1. */
export async function copyFile(from: DatabaseSync, to: string, progress: (part: number) => void): Promise<void> {
  await backup(from, to, {
    rate: PAGES,
    progress: ({ totalPages, remainingPages }) => progress(1 - remainingPages / totalPages),
  });
}

/** Copies the file of the identity, which the petstore has open only while it starts. */
export async function copyIdentity(from: string, to: string): Promise<void> {
  const path = join(from, IDENTITY);
  if (!existsSync(path)) throw new Corrupt(`${path} is not there.`);
  using db = new DatabaseSync(path, { readOnly: true, timeout: 10_000 });
  await backup(db, join(to, IDENTITY));
}

/** Takes the log of a copy into its file, which is complete by itself from then on. */
export function settle(path: string): void {
  using db = openAtRest(path);
  // Also takes in the log and removes it.
  db.exec("PRAGMA journal_mode = DELETE");
}

/** Throws `Corrupt` if an open file does not belong to the files beside it. */
export const checkTogether = (path: string, db: DatabaseSync): void => checkBeside(path, carriedIdentity(db));

/**
 * Gives the files of a directory, by name, an identity that no others have. So none of them is mistaken for one that was there before,
 * or that another copy was made to.
 */
export function giveIdentity(directory: string, names: readonly string[]): void {
  const id = randomBytes(12).toString("base64url");
  const give = (name: string, table: string) => {
    using db = new DatabaseSync(join(directory, name));
    // Throws unless the file has all of its log, which closing it does not tell: the disk may be full.
    db.exec("PRAGMA journal_mode = DELETE");
    db.prepare(`UPDATE "${table}" SET id = ?`).run(id);
  };
  for (const name of names) give(name, "$identity");
  give(IDENTITY, "identity");
}

/** Makes a new file, or opens one that was made so, to which records are added. */
export const openNew: (path: string) => DatabaseSync = openFile;
