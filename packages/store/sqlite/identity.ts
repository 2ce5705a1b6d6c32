/**
 * The files of one DATA_DIR belong together: they refer to each other's records. `identity.db` holds the directory's
 * identity, which every file carries too, and how often each file was opened there, which the file carries as well. So a
 * file of another directory is detected, a missing file does not come back empty beside the others, and neither does an
 * older copy of one file.
 *
 * SQLite makes each step atomic and durable, whichever process comes first and wherever one dies: the identity exists
 * before any file carries it, and a file carries its number before that is recorded.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Corrupt } from "../port.ts";
import { openFailure } from "./failures.ts";

export const FILE = "identity.db";
/** How long to wait for another service that is starting, in milliseconds. */
const BUSY_TIMEOUT_MS = 10_000;

/** The identity of a directory, held while one of its files is opened. */
export type Identity = ReturnType<typeof holdIdentity>;

/**
 * The identity of the directory of the file `path`. Until it is disposed, other processes that open a file of this directory
 * wait. Of two that open the same file at once, neither may get it: each can have a part of SQLite's lock, and wants the
 * other's.
 */
export function holdIdentity(path: string) {
  const [file, name] = [join(dirname(path), FILE), basename(path)];
  const run = <R>(step: () => R): R => {
    try {
      return step();
    } catch (error) {
      throw openFailure(error, file);
    }
  };
  const db = run(() => new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS }));
  try {
    const known = run(() => {
      // The file is complete on its own whenever nobody writes to it, and its directory entry is synced, too.
      db.exec("PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA fullfsync = ON; BEGIN IMMEDIATE");
      return knownIn(db, name);
    });
    return {
      path: file,
      ...known,
      make: () =>
        run(() => {
          const id = randomBytes(12).toString("base64url");
          db.exec(`CREATE TABLE identity (id TEXT NOT NULL) STRICT;
            CREATE TABLE openings (name TEXT PRIMARY KEY, times INTEGER NOT NULL) STRICT;
            INSERT INTO identity VALUES ('${id}');
            COMMIT; BEGIN IMMEDIATE`);
          return id;
        }),
      /** Records that the file carries the identity and this number. */
      nameFile: (opened: number) =>
        run(() => {
          db.prepare("INSERT OR REPLACE INTO openings VALUES (?, ?)").run(name, opened);
          db.exec("COMMIT");
        }),
      [Symbol.dispose]: () => db.close(),
    };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** The identity, if there is one yet, and how often the file was opened here before: 0 if it was not made here. */
function knownIn(db: DatabaseSync, name: string): { readonly id: string | undefined; readonly opened: number } {
  if (!hasTable(db, "identity")) return { id: undefined, opened: 0 };
  const { id } = db.prepare("SELECT id FROM identity").get() as { id: string };
  if (!hasTable(db, "openings")) return { id, opened: 0 }; // of a format that the files will be refused for
  const row = db.prepare("SELECT times FROM openings WHERE name = ?").get(name);
  return { id, opened: Number(row?.times ?? 0) };
}

/** Throws `Corrupt` if the file `path`, which carries `own`, does not belong to the files beside it. Changes nothing. */
export function checkBeside(path: string, own: Carried | undefined): void {
  const file = join(dirname(path), FILE);
  using db = existsSync(file) ? new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS }) : undefined;
  const known = db ? knownIn(db, basename(path)) : { id: undefined, opened: 0 };
  checkIdentity(path, { ...known, path: file, make: () => "" }, own);
}

export const hasTable = (db: DatabaseSync, name: string): boolean =>
  db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== undefined;

export interface Carried {
  readonly id: string;
  readonly opened: number;
}

/** Undefined when the file carries nothing. */
export const carriedIdentity = (db: DatabaseSync): Carried | undefined =>
  hasTable(db, "$identity")
    ? (db.prepare(`SELECT id, opened FROM "$identity"`).get() as Carried | undefined)
    : undefined;

const RESTORE = "restore all files of DATA_DIR from one backup, or remove DATA_DIR to start anew.";

/** Throws `Corrupt` when the file was made here and is gone. Called before opening it, which would make an empty one. */
export function checkPresence(path: string, { opened }: Identity): void {
  if (opened === 0 || existsSync(path)) return;
  throw new Corrupt(`${path} is gone, but the files beside it refer to what it held: ${RESTORE}`);
}

/** What an open file must carry from now on. Throws `Corrupt` when it belongs elsewhere, or to another time. */
export function checkIdentity(
  path: string,
  known: Pick<Identity, "path" | "id" | "opened" | "make">,
  own: Carried | undefined,
): Carried {
  if (known.id === undefined && own !== undefined) {
    throw new Corrupt(`${path} was made with an ${FILE} that is not there: ${RESTORE}`);
  }
  if (own === undefined && known.opened > 0) {
    throw new Corrupt(
      `${path} is empty or not the one that was here, and the files beside it refer to what that held: ${RESTORE}`,
    );
  }
  if (own !== undefined && own.id !== known.id) {
    throw new Corrupt(`${path} belongs to the files of another DATA_DIR, not to ${known.path}: ${RESTORE}`);
  }
  const opened = own?.opened ?? 0;
  if (opened < known.opened) {
    throw new Corrupt(`${path} is older than the files beside it, which refer to what it held since: ${RESTORE}`);
  }
  // One more than is recorded: a process died before it could record that.
  if (known.opened > 0 && opened > known.opened + 1) {
    throw new Corrupt(`${known.path} is older than ${path}, and the files beside it may be, too: ${RESTORE}`);
  }
  return { id: known.id ?? known.make(), opened: known.opened + 1 };
}
