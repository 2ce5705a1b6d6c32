/**
 * The files of one DATA_DIR belong together: they refer to each other's records. `identity.db` holds the directory's
 * identity, which every file carries too, and the names of the files that were made there. So a file of another directory
 * is detected, and a missing file does not come back empty beside the others.
 *
 * SQLite makes each step atomic and durable, whichever process comes first and wherever one dies: the identity exists
 * before any file carries it, and a file carries it before its name is recorded.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Corrupt } from "../port.ts";

const FILE = "identity.db";
/** How long to wait for another service that is starting, in milliseconds. */
const BUSY_TIMEOUT_MS = 10_000;

export interface Identity {
  /** The file that holds it. */
  readonly path: string;
  readonly id: string;
  /** Whether the file was made here before. */
  readonly isKnown: boolean;
}

const identityPath = (path: string): string => join(dirname(path), FILE);

/** The identity of the directory of the file `path`. Made if nothing in the directory has one yet. */
function readIdentity(path: string): Identity {
  const fresh = randomBytes(12).toString("base64url");
  return inIdentity(path, (db) => {
    db.prepare("INSERT INTO identity SELECT ? WHERE NOT EXISTS (SELECT 1 FROM identity)").run(fresh);
    const { id } = db.prepare("SELECT id FROM identity").get() as { id: string };
    const isKnown = db.prepare("SELECT 1 FROM files WHERE name = ?").get(basename(path)) !== undefined;
    return { path: identityPath(path), id, isKnown };
  });
}

/** Records that the file exists and carries the identity. */
export const nameFile = (path: string): void =>
  inIdentity(path, (db) => void db.prepare("INSERT OR IGNORE INTO files VALUES (?)").run(basename(path)));

/** A failure of the identity's own file. */
export class IdentityFailure extends Error {
  override readonly name = "IdentityFailure";
  readonly path: string;
  constructor(path: string, cause: unknown) {
    super(`${path} failed`, { cause });
    this.path = path;
  }
}

function inIdentity<R>(path: string, step: (db: DatabaseSync) => R): R {
  try {
    return transact(identityPath(path), step);
  } catch (error) {
    throw new IdentityFailure(identityPath(path), error);
  }
}

function transact<R>(path: string, step: (db: DatabaseSync) => R): R {
  using db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  // The file is complete on its own whenever nobody writes to it, and its directory entry is synced, too.
  db.exec("PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA fullfsync = ON; BEGIN IMMEDIATE");
  db.exec("CREATE TABLE IF NOT EXISTS identity (id TEXT NOT NULL) STRICT");
  db.exec("CREATE TABLE IF NOT EXISTS files (name TEXT PRIMARY KEY) STRICT");
  const result = step(db);
  db.exec("COMMIT");
  return result;
}

/** The file's own identity; undefined when it carries none. */
export function carriedIdentity(db: DatabaseSync): string | undefined {
  const isThere = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = '$identity'").get() !== undefined;
  return isThere ? (db.prepare(`SELECT id FROM "$identity"`).get() as { id: string } | undefined)?.id : undefined;
}

const RESTORE = "restore all files of DATA_DIR from one backup, or remove DATA_DIR to start anew.";

/** Throws `Corrupt` when the file was made here and is gone. Called before opening it, which would make an empty one. */
export function checkPresence(path: string, known: Identity | undefined): void {
  if (!known?.isKnown || existsSync(path)) return;
  throw new Corrupt(`${path} is gone, but the files beside it refer to what it held: ${RESTORE}`);
}

/** The identity that an open file must carry from now on. Throws `Corrupt` when it belongs elsewhere. */
export function checkIdentity(path: string, known: Identity | undefined, own: string | undefined): Identity {
  if (known === undefined && own !== undefined) {
    throw new Corrupt(`${path} was made with an ${FILE} that is not there: ${RESTORE}`);
  }
  const identity = known ?? readIdentity(path);
  if (own === undefined && identity.isKnown) {
    throw new Corrupt(
      `${path} is empty or not the one that was here, and the files beside it refer to what that held: ${RESTORE}`,
    );
  }
  if (own !== undefined && own !== identity.id) {
    throw new Corrupt(`${path} belongs to the files of another DATA_DIR, not to ${identity.path}: ${RESTORE}`);
  }
  return identity;
}

/** The identity of the file's directory, if it has one. */
export const knownIdentity = (path: string): Identity | undefined =>
  existsSync(identityPath(path)) ? readIdentity(path) : undefined;
