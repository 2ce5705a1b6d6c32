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

/** The identity of a directory, held while one of its files is opened. */
export interface Identity extends Disposable {
  /** The file that holds it. */
  readonly path: string;
  /** Undefined when there is none yet. */
  readonly id: string | undefined;
  /** Whether the file that is opened was made here before. */
  readonly isKnown: boolean;
  /** Makes one, on disk. */
  make(): string;
  /** Records that the file exists and carries the identity. */
  nameFile(): void;
}

/** A failure of the identity's own file. */
export class IdentityFailure extends Error {
  override readonly name = "IdentityFailure";
  readonly path: string;
  constructor(path: string, cause: unknown) {
    super(`${path} failed`, { cause });
    this.path = path;
  }
}

/**
 * The identity of the directory of the file `path`. Until it is disposed, other processes that open a file of this directory
 * wait. Of two that open the same file at once, neither may get it: each can have a part of SQLite's lock, and wants the
 * other's.
 */
export function holdIdentity(path: string): Identity {
  const [file, name] = [join(dirname(path), FILE), basename(path)];
  const run = <R>(step: () => R): R => {
    try {
      return step();
    } catch (error) {
      throw new IdentityFailure(file, error);
    }
  };
  const db = run(() => new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS }));
  try {
    const known = run(() => {
      // The file is complete on its own whenever nobody writes to it, and its directory entry is synced, too.
      db.exec("PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA fullfsync = ON; BEGIN IMMEDIATE");
      const isEmpty = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'files'").get() === undefined;
      if (isEmpty) return { id: undefined, isKnown: false };
      const { id } = db.prepare("SELECT id FROM identity").get() as { id: string };
      return { id, isKnown: db.prepare("SELECT 1 FROM files WHERE name = ?").get(name) !== undefined };
    });
    return {
      path: file,
      ...known,
      make: () =>
        run(() => {
          const id = randomBytes(12).toString("base64url");
          db.exec(`CREATE TABLE identity (id TEXT NOT NULL) STRICT;
            CREATE TABLE files (name TEXT PRIMARY KEY) STRICT;
            INSERT INTO identity VALUES ('${id}');
            COMMIT; BEGIN IMMEDIATE`);
          return id;
        }),
      nameFile: () =>
        run(() => {
          db.prepare("INSERT OR IGNORE INTO files VALUES (?)").run(name);
          db.exec("COMMIT");
        }),
      [Symbol.dispose]: () => db.close(),
    };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** The file's own identity; undefined when it carries none. */
export function carriedIdentity(db: DatabaseSync): string | undefined {
  const isThere = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = '$identity'").get() !== undefined;
  return isThere ? (db.prepare(`SELECT id FROM "$identity"`).get() as { id: string } | undefined)?.id : undefined;
}

const RESTORE = "restore all files of DATA_DIR from one backup, or remove DATA_DIR to start anew.";

/** Throws `Corrupt` when the file was made here and is gone. Called before opening it, which would make an empty one. */
export function checkPresence(path: string, { isKnown }: Identity): void {
  if (!isKnown || existsSync(path)) return;
  throw new Corrupt(`${path} is gone, but the files beside it refer to what it held: ${RESTORE}`);
}

/** The identity that an open file must carry from now on. Throws `Corrupt` when it belongs elsewhere. */
export function checkIdentity(path: string, known: Identity, own: string | undefined): string {
  if (known.id === undefined && own !== undefined) {
    throw new Corrupt(`${path} was made with an ${FILE} that is not there: ${RESTORE}`);
  }
  if (own === undefined && known.isKnown) {
    throw new Corrupt(
      `${path} is empty or not the one that was here, and the files beside it refer to what that held: ${RESTORE}`,
    );
  }
  if (own !== undefined && own !== known.id) {
    throw new Corrupt(`${path} belongs to the files of another DATA_DIR, not to ${known.path}: ${RESTORE}`);
  }
  return known.id ?? known.make();
}
