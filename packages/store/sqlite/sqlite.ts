/**
 * The engine that needs no server: SQLite keeps the documents, as BSON, in one file that one process has open. A call is
 * answered once what the answer says is on disk.
 */
import { existsSync, statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { reporting } from "../engine/queries.ts";
import { type Batch, type TableEngine, tableStore } from "../engine/table-store.ts";
import type { StoreOptions } from "../open.ts";
import { NotWritable, type Store, type StoreFile } from "../port.ts";
import { takeCheckpoints } from "./checkpoints.ts";
import { openFailure, readFailure } from "./failures.ts";
import { logOf, openFile, openLog } from "./file.ts";
import { groupCommit } from "./group-commit.ts";
import { inspectionOf } from "./inspection.ts";
import { embeddedTable, prepareTable } from "./table.ts";

/** `onFatal`: it is unknown what is on disk, or the files are gone (`NotWritable`). */
export type EmbeddedOptions = Pick<StoreOptions, "clock" | "sleep" | "log" | "onFatal" | "onCorrupt">;

/**
 * Opens or creates the store in the file `path`. Throws `StoreLocked`, `UnsupportedFormat`, `NotWritable` or `Corrupt`, with a
 * message for the operator.
 */
export async function openEmbedded(path: string, options: EmbeddedOptions): Promise<Store> {
  const isNew = !existsSync(path);
  const db = openFile(path);
  if (isNew) options.log.info({ path }, "there was no store, and an empty one was made");
  return embeddedStore(db, path, options);
}

/** The store in an open file, which it closes. */
export function embeddedStore(
  db: DatabaseSync,
  path: string,
  { clock, sleep, log, onFatal, onCorrupt }: EmbeddedOptions,
  writeAheadLog = openLog(db),
): Store {
  const checkpoints = takeCheckpoints(db);
  const place = watchPlace([path, logOf(db)], (lost) => {
    const isSaved = lost !== path && checkpoints.save();
    const error = isSaved ? new Error(`${lost} is gone, and what it held is in ${path} now`) : displaced(lost);
    commit.fail(error);
    throw error;
  });
  const commit = groupCommit(db, {
    clock,
    async sync() {
      checkpoints.afterCommit();
      await writeAheadLog.sync();
      place.check();
    },
    onFatal,
    onRoom(room, err) {
      if (room === "again") log.warn({ path }, "there is room again: the store takes changes");
      else log.error({ err, path }, "the disk is full: until there is room, changes are refused and reads go on");
    },
  });

  const reading = <R>(step: () => R): R => {
    try {
      return step();
    } catch (error) {
      throw readFailure(error, path);
    }
  };

  const sequences = embeddedSequences(db);
  let closing: Promise<void> | undefined;
  async function close(): Promise<void> {
    await commit.stop(sequences.settle);
    place[Symbol.dispose]();
    if (!db.isOpen) return;
    try {
      place.check();
    } catch {
      return; // closing would remove the log by its path, where another store may have its own by now
    }
    if (checkpoints.mayEnd()) db.close();
    writeAheadLog.close();
  }

  const engine: TableEngine = {
    read: (step) => commit.read(() => reading(step)),
    write: (step) => commit.write((batch) => reading(() => step(batch))),
    async table(declaration) {
      // Goes to the disk with whatever is committed next. If it is lost before, the next start does it again.
      const prepared = commit.read(() => {
        inTransaction(db, () => prepareTable(db, declaration));
        checkpoints.afterCommit();
      });
      await prepared.catch((error) => Promise.reject(openFailure(error, path)));
      return embeddedTable(db, declaration);
    },
    next: sequences.next,
    close: () => (closing ??= close()),
  };
  const file: StoreFile = {
    path: db.location() ?? path,
    keep: checkpoints.keepFile,
    hold() {
      commit.hold();
      return checkpoints.logSize();
    },
    release: commit.release,
  };
  const inspection = inspectionOf(db);
  return { ...tableStore(engine, { clock, sleep, report: reporting(log, clock, onCorrupt) }), file, inspection };
}

function inTransaction(db: DatabaseSync, work: () => void): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    work();
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

/** Numbers that a sequence reserves in the file at a time. At most this many are lost when the process dies. */
const BLOCK = 32;

/**
 * Counts in memory and reserves numbers in the file block by block. Only one process has the file open, so numbers are
 * still handed out in ascending order. What a batch took that was undone is a gap.
 */
function embeddedSequences(db: DatabaseSync) {
  const read = db.prepare(`SELECT last FROM "$sequences" WHERE name = ?`);
  const write = db.prepare(
    `INSERT INTO "$sequences" VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET last = excluded.last`,
  );
  /** The last number that was handed out, and the last that is reserved in the file: up to there nothing is written. */
  const known = new Map<string, { last: number; reserved: number }>();

  function open(name: string) {
    const { last } = (read.get(name) as { last: number } | undefined) ?? { last: 0 };
    const opened = { last, reserved: last };
    known.set(name, opened);
    return opened;
  }

  return {
    next(name: string, batch: Batch, above = 0): number {
      const sequence = known.get(name) ?? open(name);
      const number = Math.max(sequence.last, above) + 1;
      sequence.last = number;
      if (number > sequence.reserved) {
        const end = number + BLOCK;
        const reserve = () => void write.run(name, end);
        batch.write(reserve, () => {
          sequence.reserved = end;
        });
      }
      return number;
    },

    /** Gives back reserved numbers that nobody took. */
    settle(batch: Batch): void {
      for (const [name, { last }] of known) batch.write(() => void write.run(name, last));
    },
  };
}

/** How often an idle store looks where its files are, in milliseconds. */
const LOOK_MS = 500;

/**
 * Whether the files of an open store are still where its next start will look for them: files that were removed can still be
 * written, and what is written is lost when they are closed. `lost` is told the first path that leads elsewhere, by a check or
 * by a look from time to time, and throws.
 */
function watchPlace(paths: readonly string[], lost: (path: string) => never) {
  const files = paths.map((path) => ({ path, opened: look(path) }));
  function check(): void {
    for (const { path, opened } of files) {
      const found = look(path);
      if (found === undefined || found.ino !== opened?.ino || found.dev !== opened.dev) lost(path);
    }
  }
  const timer = setInterval(() => {
    try {
      check();
    } catch {
      clearInterval(timer);
    }
  }, LOOK_MS).unref();
  return { check, [Symbol.dispose]: () => clearInterval(timer) };
}

/** Undefined if there is nothing that could be opened. */
function look(path: string) {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false }); // an inode number may need 64 bits
  } catch {
    return undefined;
  }
}

const displaced = (path: string): NotWritable =>
  new NotWritable(
    `${path} was moved, removed or replaced while the petstore ran, which takes no more changes: ` +
      "move it back, or restore all files of DATA_DIR from one backup, and start again.",
  );
