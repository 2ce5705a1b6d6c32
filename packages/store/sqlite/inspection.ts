/** Looking at a file of the embedded engine: through the connection that has it open, or, while nobody has, without a trace. */
import { existsSync, realpathSync, rmSync, statSync } from "node:fs";
import { basename } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { decodeSame, readRow } from "../document/codec.ts";
import { Corrupt, type Id } from "../port.ts";
import type { Inspection, Problem, Records, Row, StoreAtRest } from "../rows.ts";
import { checkComplete } from "./checkpoints.ts";
import { openFailure, readFailure } from "./failures.ts";
import { identify, openFile } from "./file.ts";
import { carriedIdentity, checkBeside, hasTable } from "./identity.ts";
import { indexName, KEY, quote } from "./table.ts";

/** The rows of an open file, which may be in use: nothing stays open between two calls. */
export function inspectionOf(db: DatabaseSync): Inspection {
  return {
    async page(collection, limit, after) {
      if (!hasTable(db, collection)) return [];
      const [where, bounds] = after === undefined ? ["", []] : ["WHERE _id > ?", [after]];
      const page = db.prepare(`SELECT * FROM ${quote(collection)} ${where} ORDER BY _id LIMIT ?`);
      return page.all(...bounds, limit).map(rowOf);
    },
    async many(collection, ids) {
      if (!hasTable(db, collection)) return [];
      const one = db.prepare(`SELECT * FROM ${quote(collection)} WHERE _id = ?`);
      return ids
        .map((id) => one.get(id))
        .filter((row) => row !== undefined)
        .map(rowOf);
    },
    read: readRow,
    async sequences() {
      if (!hasTable(db, "$sequences")) return [];
      const all = db.prepare(`SELECT name, last FROM "$sequences" ORDER BY name`).all();
      return all.map(({ name, last }) => [String(name), Number(last)] as const);
    },
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

function rowOf(columns: object): Row {
  const { _id, doc, ...keys } = columns as { readonly _id: Id; readonly doc: Uint8Array };
  const indexed: Record<string, unknown> = {};
  for (const [column, value] of Object.entries(keys as object))
    if (value !== null) indexed[column.slice(KEY.length)] = value instanceof Uint8Array ? value[0] === 1 : value;
  return { _id, doc, indexed };
}

export function recordsIn(db: DatabaseSync): Records {
  const { page, sequences } = inspectionOf(db);
  return {
    page,
    sequences,
    async collections() {
      const tables =
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%$%' AND name NOT LIKE 'sqlite_%'";
      const found = db.prepare(`${tables} ORDER BY name`).all();
      return found.map(({ name }) => String(name));
    },
    count: async (collection) => Number(db.prepare(`SELECT count(*) AS n FROM ${quote(collection)}`).get()?.n),
    fields({ _id, doc }) {
      const fields = decodeSame(doc);
      return fields?._id === _id ? fields : undefined;
    },
    async last(collection) {
      if (!hasTable(db, collection)) return undefined;
      const found = db.prepare(`SELECT max(_id) AS last FROM ${quote(collection)}`).get();
      return (found?.last ?? undefined) as Id | undefined;
    },
    async add(collection, rows) {
      // The columns and indexes of the collection are made, and filled, when a service opens it.
      const table = `CREATE TABLE IF NOT EXISTS ${quote(collection)} (_id ANY NOT NULL PRIMARY KEY, doc BLOB NOT NULL) STRICT`;
      db.exec(`BEGIN IMMEDIATE; ${table}`);
      const insert = db.prepare(`INSERT INTO ${quote(collection)} (_id, doc) VALUES (?, ?)`);
      for (const { _id, doc } of rows) insert.run(_id, doc);
      db.exec("COMMIT");
    },
    async setSequence(name, last) {
      db.prepare(`INSERT OR REPLACE INTO "$sequences" VALUES (?, ?)`).run(name, last);
    },
  };
}

/** Of `integrity_check`. */
const MAX_FLAWS = 20;

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
