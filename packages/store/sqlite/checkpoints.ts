/**
 * The write-ahead log holds the latest changes until a checkpoint takes them into the file, so a copy of the file alone is an
 * old state. It looks like a complete one, because a store that is closed has no log. Hence the mark: while the store is
 * open, the file says that it needs its log, and the log says the opposite. Whoever takes the log into the file, a start, the
 * close or another program, makes the file say that it is complete.
 */
import type { DatabaseSync } from "node:sqlite";
import { Corrupt } from "../port.ts";
import { isFull } from "./failures.ts";
import { hasTable } from "./identity.ts";

/** From so many pages in the log on, a commit is followed by a checkpoint; as by default in SQLite. */
const PAGES = 1000;
/** What the log's file keeps of its length once it is taken in: it may have grown while the file was kept. */
const KEPT_BYTES = 64 * 1024 * 1024;
/** Sizes in the log's file, in bytes. */
const LOG_HEADER = 32;
const FRAME_HEADER = 24;

/** Makes the mark's table, and has file and log together say that the file is complete. */
export const COMPLETE = `CREATE TABLE IF NOT EXISTS "$log" (is_needed INTEGER NOT NULL) STRICT;
  DELETE FROM "$log"; INSERT INTO "$log" VALUES (0);`;

/** Throws `Corrupt` for a file that needs the log that it was opened without. */
export function checkComplete(db: DatabaseSync, path: string): void {
  if (!hasTable(db, "$log") || db.prepare(`SELECT 1 FROM "$log" WHERE is_needed = 1`).get() === undefined) return;
  throw new Corrupt(
    `${path} lacks its latest changes: it was copied from a running petstore, or ${path}-wal was removed. ` +
      "Restore all files of DATA_DIR from one backup that was made while the petstore was stopped.",
  );
}

/** Takes the checkpoints over from SQLite. */
export function takeCheckpoints(db: DatabaseSync) {
  db.exec(`PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${KEPT_BYTES}`);
  const state = counting(db, "NOOP");
  const passive = counting(db, "PASSIVE");
  const mark = db.prepare(`UPDATE "$log" SET is_needed = ?`);
  /** Whether the file says that it needs its log. */
  let isMarked = false;
  /** What file and log together say. */
  let isNeeded = 0;
  /** Whether somebody copies the file. */
  let isKept = false;

  /** Returns false if there is no room. */
  function say(value: 0 | 1): boolean {
    if (isNeeded === value) return true;
    try {
      mark.run(value);
    } catch (error) {
      if (isFull(error)) return false;
      throw error;
    }
    isNeeded = value;
    return true;
  }

  /** Returns whether the file has all of the log. */
  function checkpoint(): boolean {
    const { inLog, taken } = passive();
    return inLog === taken;
  }

  /** Nothing is lost by a failed checkpoint: the log keeps what it has. SQLite by itself ignores that as well. */
  function orFalse(work: () => boolean): boolean {
    try {
      return work();
    } catch {
      return false;
    }
  }

  return {
    /** To be called after each commit. */
    afterCommit(): void {
      if (!say(0) || isKept || (isMarked && state().inLog < PAGES) || !say(1)) return;
      isMarked = orFalse(checkpoint) || isMarked;
      say(0);
    },
    /** While true, no checkpoint changes the file, and the log grows. */
    keepFile(kept: boolean): void {
      isKept = kept;
    },
    /** How much of the log's file is in use, in bytes. https://sqlite.org/fileformat2.html#the_write_ahead_log */
    logSize(): number {
      const { inLog } = state();
      const { page_size: page } = db.prepare("PRAGMA page_size").get() as { page_size: number };
      return inLog > 0 ? LOG_HEADER + inLog * (FRAME_HEADER + page) : 0;
    },
    /** Makes the file complete without its log. Returns whether it is. */
    save: () => orFalse(() => say(0) && checkpoint()),
    /** Whether SQLite may remove the log, as it does when it closes the file. */
    mayEnd: () => say(0),
  };
}

/** Runs a checkpoint and counts the pages that are in the log, and those of them that are in the file. */
function counting(db: DatabaseSync, mode: "NOOP" | "PASSIVE") {
  const statement = db.prepare(`PRAGMA wal_checkpoint(${mode})`);
  statement.setReturnArrays(true); // half the time
  return () => {
    const [, inLog, taken] = statement.get() as unknown as [isBusy: number, inLog: number, taken: number];
    return { inLog, taken };
  };
}
