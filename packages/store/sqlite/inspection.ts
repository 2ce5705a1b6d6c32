/** Looking at a file of the embedded engine: through the connection that has it open, or, while nobody has, without a trace. */
import { existsSync, realpathSync, rmSync, statSync } from "node:fs";
import { basename } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { readRow } from "../document/codec.ts";
import { Corrupt } from "../port.ts";
import type { Inspection, Problem, StoreAtRest } from "../rows.ts";
import { checkComplete } from "./checkpoints.ts";
import { openFailure, readFailure } from "./failures.ts";
import { identify, openFile } from "./file.ts";
import { carriedIdentity, checkBeside } from "./identity.ts";
import { hasTable, rowOf, rowsIn } from "./rows.ts";
import { indexName, KEY, quote } from "./table.ts";

/** Of `integrity_check`. */
const MAX_FLAWS = 20;

export function inspectionOf(db: DatabaseSync): Inspection {
  return {
    ...rowsIn(db),
    async many(collection, ids) {
      if (!hasTable(db, collection)) return [];
      const one = db.prepare(`SELECT * FROM ${quote(collection)} WHERE _id = ?`);
      return ids
        .map((id) => one.get(id))
        .filter((row) => row !== undefined)
        .map(rowOf);
    },
    read: readRow,
    async wrongIndexes({ name, indexes }) {
      const there = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?").all(name);
      const names = new Set(there.map((index) => index.name));
      return Object.values(indexes)
        .map((fields) => indexName(name, fields))
        .filter((index) => !names.has(index))
        .map((index) => `the index ${index} is missing`);
    },
  };
}

/** Throws `StoreLocked` if a petstore has the file open, and `Corrupt` if it can't be read at all. */
export function inspectFile(path: string): StoreAtRest {
  if (!existsSync(path)) throw new Corrupt(`${path} is not there: restore all files of DATA_DIR from one backup.`);
  const place = realpathSync(path);
  const hasLog = (statSync(`${place}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  const hadMemory = existsSync(`${place}-shm`);
  const url = pathToFileURL(place);
  // Nobody has it open, so SQLite needs no files beside it: https://sqlite.org/uri.html#uriimmutable
  if (!hasLog) url.searchParams.set("immutable", "1");
  const db = openUrl(url, path);
  const close = () => {
    if (!db.isOpen) return;
    db.close();
    // By which SQLite shared the log among readers: there are none.
    if (hasLog && !hadMemory) rmSync(`${place}-shm`, { force: true });
  };

  const { page, many, read, sequences, wrongIndexes } = inspectionOf(db);
  /** A file may be damaged in places. */
  const reading =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    (...args: A): Promise<R> =>
      call(...args).catch((error) => Promise.reject(readFailure(error, path)));

  return {
    page: reading(page),
    many: reading(many),
    read,
    sequences: reading(sequences),
    wrongIndexes: reading(wrongIndexes),
    async problems() {
      const found: Problem[] = [];
      const check = (about: Problem["about"], step: () => void): void => {
        try {
          step();
        } catch (error) {
          found.push({ about, text: (openFailure(error, path) as Error).message });
        }
      };
      check("identity", () => identify(db, path));
      if (!hasLog) check("identity", () => checkComplete(db, path));
      check("identity", () => checkBeside(path, carriedIdentity(db)));
      check("file", () => {
        for (const { integrity_check: flaw } of db.prepare(`PRAGMA integrity_check(${MAX_FLAWS})`).all())
          if (flaw !== "ok")
            found.push({ about: /\bindex\b/.test(`${flaw}`) ? "index" : "file", text: `${basename(path)}: ${flaw}` });
      });
      return found;
    },
    isEmpty: async () => false,
    isInUse: async () => false,
    versions: async () => new Set(),
    async dropIndexes({ name }) {
      close();
      using writing = openFile(path);
      const of = (sql: string) => writing.prepare(sql).all(name) as { readonly name: string }[];
      for (const index of of(
        "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL",
      ))
        writing.exec(`DROP INDEX ${quote(index.name)}`);
      for (const column of of("SELECT name FROM pragma_table_info(?)"))
        if (column.name.startsWith(KEY)) writing.exec(`ALTER TABLE ${quote(name)} DROP COLUMN ${quote(column.name)}`);
      try {
        // Those of the ids can't be dropped.
        writing.exec("REINDEX");
      } catch (error) {
        const { message } = error as Error;
        throw new Corrupt(`The indexes of ${path} can't be built (${message}): restore a backup.`, { cause: error });
      }
    },
    close: async () => close(),
  };
}

/** Also finds out whether it can be read. */
function openUrl(url: URL, path: string): DatabaseSync {
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(url, { readOnly: true });
    db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get();
    return db;
  } catch (error) {
    db?.close();
    throw openFailure(error, path);
  }
}
