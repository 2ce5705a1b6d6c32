/** The file of the embedded engine: opening it, and recognising it as the petstore's. */
import { closeSync, existsSync, fdatasync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { Corrupt, UnsupportedFormat } from "../port.ts";
import { COMPLETE, checkComplete } from "./checkpoints.ts";
import { openFailure } from "./failures.ts";
import { carriedIdentity, checkIdentity, checkPresence, holdIdentity, type Identity } from "./identity.ts";

/** Marks a file as the petstore's (SQLite's application_id): "pets" in ASCII. */
const APPLICATION_ID = 0x70657473;
/**
 * Goes up when what is stored changes so that another version could no longer read it.
 * 2: orders are stored once their units are reserved; idempotency keys hold no contents.
 */
export const FORMAT = 2;
/** The directory in a directory that is being filled, in which its files are until all of them are complete. */
export const INCOMING = "incoming";

/**
 * Opens or creates the file for this process alone. Throws `StoreLocked`, `UnsupportedFormat`, `NotWritable` or `Corrupt`,
 * with a message for the operator.
 */
export function openFile(path: string): DatabaseSync {
  let db: DatabaseSync | undefined;
  try {
    makeDirectory(dirname(path));
    checkFilled(path);
    using identity = holdIdentity(path);
    checkPresence(path, identity);
    db = new DatabaseSync(path);
    claim(db, path, identity);
    return db;
  } catch (error) {
    db?.close();
    throw openFailure(error, path);
  }
}

/** Throws `Corrupt` where the file is about to come: a new one must not take its place. */
function checkFilled(path: string): void {
  const incoming = join(dirname(path), INCOMING);
  if (existsSync(path) || !existsSync(incoming)) return;
  throw new Corrupt(
    `${dirname(path)} is being filled by npm run data, or that was cut short: give the same command again, or remove ${incoming} to start anew.`,
  );
}

/**
 * Makes a directory, and those above it. Node's own `recursive` never returns where the parent is there and the system says
 * ENOENT all the same, as in /proc.
 */
export function makeDirectory(path: string): void {
  const parent = dirname(path);
  if (parent !== path && !existsSync(parent)) makeDirectory(parent);
  try {
    mkdirSync(path);
  } catch (error) {
    if (!existsSync(`${path}/.`)) throw error;
  }
}

function claim(db: DatabaseSync, path: string, identity: Identity): void {
  // Before SQLite looks for a log, and makes an empty one.
  const hasLog = (statSync(logOf(db), { throwIfNoEntry: false })?.size ?? 0) > 0;
  db.exec("PRAGMA locking_mode = EXCLUSIVE");
  identify(db, path);
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16000");
  // On macOS a plain sync does not reach the disk. Elsewhere these two do nothing.
  db.exec("PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON");
  const { id, opened } = checkIdentity(path, identity, carriedIdentity(db));
  if (!hasLog) checkComplete(db, path);
  // Writes even when all of it exists already, to detect a full or read-only disk now.
  db.exec(`BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS "$sequences" (name TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS "$identity" (id TEXT NOT NULL, opened INTEGER NOT NULL) STRICT;
    DELETE FROM "$identity";
    INSERT INTO "$identity" VALUES ('${id}', ${opened});
    ${COMPLETE}
    PRAGMA application_id = ${APPLICATION_ID};
    PRAGMA user_version = ${FORMAT};
    COMMIT`);
  identity.nameFile(opened);
}

/** The path of the write-ahead log. SQLite follows a symbolic link, and has the log beside the file that it leads to. */
export const logOf = (db: DatabaseSync): string => `${db.location()}-wal`;

/**
 * Takes over the sync that ends each commit. SQLite makes it within COMMIT, where it blocks the event loop. With
 * `synchronous = NORMAL` only that sync is left out: the log is still synced before what is in it goes to the database.
 * https://sqlite.org/pragma.html#pragma_synchronous
 */
export function openLog(db: DatabaseSync) {
  const file = openSync(logOf(db), "r+");
  db.exec("PRAGMA synchronous = NORMAL");
  const sync = promisify(fdatasync);
  return {
    /** Resolves when everything written to the log so far is on disk. */
    sync: () => sync(file),
    close: () => closeSync(file),
  };
}

/** Throws for the file of another program, or of another version. */
export function identify(db: DatabaseSync, path: string): void {
  const empty = db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
  if (!empty && pragma(db, "application_id") !== APPLICATION_ID) {
    throw new Corrupt(`${path} is the database of another program: set DATA_DIR to another directory.`);
  }
  const format = pragma(db, "user_version");
  if (empty || format === FORMAT) return;
  throw new UnsupportedFormat(
    `${path} was written by ${
      format > FORMAT
        ? "a newer petstore: upgrade this one, or set DATA_DIR to another directory."
        : "an older petstore, in a format that this one does not read: set DATA_DIR to another directory."
    }`,
  );
}

const pragma = (db: DatabaseSync, name: "application_id" | "user_version"): number =>
  Number(db.prepare(`PRAGMA ${name}`).get()?.[name]);
