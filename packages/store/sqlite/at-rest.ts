/** The files of the embedded engine while no petstore has them open, and copies of them. */
import { randomBytes } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { Corrupt } from "../port.ts";
import type { Entry, Records } from "../records.ts";
import { bytesOf, entryOf } from "../records.ts";
import { COMPLETE, checkComplete } from "./checkpoints.ts";
import { openFailure } from "./failures.ts";
import { INCOMING, identify, logOf, openFile } from "./file.ts";
import { carriedIdentity, checkBeside, FILE as IDENTITY } from "./identity.ts";
import { quote } from "./table.ts";

export { FORMAT } from "./file.ts";
export { IDENTITY, INCOMING };

/** Pages that are copied at once. */
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

/** The records of an open file. */
export function recordsIn(db: DatabaseSync): Records {
  const tables = db.prepare(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%$%' AND name NOT LIKE 'sqlite_%' ORDER BY name",
  );
  const isThere = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?");
  return {
    collections: async () => tables.all().map(({ name }) => String(name)),
    count: async (collection) => Number(db.prepare(`SELECT count(*) AS n FROM ${quote(collection)}`).get()?.n),
    async page(collection, after, limit) {
      const from = after === undefined ? "" : "WHERE _id > ?";
      const rows = db.prepare(`SELECT _id, doc FROM ${quote(collection)} ${from} ORDER BY _id LIMIT ?`);
      const found = after === undefined ? rows.all(limit) : rows.all(after, limit);
      return found.map(({ _id, doc }): Entry => entryOf(_id as number | string, doc as Uint8Array));
    },
    async sequences() {
      const all = db.prepare(`SELECT name, last FROM "$sequences" ORDER BY name`).all();
      return new Map(all.map(({ name, last }) => [String(name), Number(last)]));
    },
    async last(collection) {
      if (!isThere.get(collection)) return undefined;
      const found = db.prepare(`SELECT max(_id) AS last FROM ${quote(collection)}`).get();
      return (found?.last ?? undefined) as number | string | undefined;
    },
    async add(collection, entries) {
      // The columns and indexes of the collection are made, and filled, when a service opens it.
      const table = `CREATE TABLE IF NOT EXISTS ${quote(collection)} (_id ANY NOT NULL PRIMARY KEY, doc BLOB NOT NULL) STRICT`;
      db.exec(`BEGIN IMMEDIATE; ${table}`);
      const insert = db.prepare(`INSERT INTO ${quote(collection)} (_id, doc) VALUES (?, ?)`);
      for (const entry of entries) insert.run(entry._id, bytesOf(entry));
      db.exec("COMMIT");
    },
    async setSequence(name, last) {
      db.prepare(`INSERT OR REPLACE INTO "$sequences" VALUES (?, ?)`).run(name, last);
    },
  };
}

/** Makes a new file, or opens one that was made so, to which records are added. */
export const openNew: (path: string) => DatabaseSync = openFile;
