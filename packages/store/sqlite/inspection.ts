/** Looking at a file of the embedded engine: through the connection that has it open, or, while nobody has, without a trace. */
import { existsSync, realpathSync, rmSync, statSync } from "node:fs";
import { basename } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { type Inspection, type Problem, type Row, readRow, type StoreAtRest } from "../inspection.ts";
import { Corrupt, type Id } from "../port.ts";
import { checkComplete } from "./checkpoints.ts";
import { openFailure } from "./failures.ts";
import { identify, openFile } from "./file.ts";
import { carriedIdentity, identityProblem } from "./identity.ts";
import { indexName, quote } from "./table.ts";

const KEY = "key_";
/** Of `integrity_check`. */
const MAX_FLAWS = 20;

/** `db` may be in use: nothing stays open between two calls. */
export function inspectionOf(db: DatabaseSync): Omit<Inspection, "close"> {
  const hasTable = (name: string) =>
    db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== undefined;
  return {
    async page(collection, limit, after) {
      if (!hasTable(collection)) return [];
      const [where, bounds] = after === undefined ? ["", []] : ["WHERE _id > ?", [after]];
      const page = db.prepare(`SELECT * FROM ${quote(collection)} ${where} ORDER BY _id LIMIT ?`);
      return page.all(...bounds, limit).map(rowOf);
    },
    async many(collection, ids) {
      if (!hasTable(collection)) return [];
      const one = db.prepare(`SELECT * FROM ${quote(collection)} WHERE _id = ?`);
      return ids
        .map((id) => one.get(id))
        .filter((row) => row !== undefined)
        .map(rowOf);
    },
    read: readRow,
    async last(sequence) {
      if (!hasTable("$sequences")) return 0;
      return Number(db.prepare(`SELECT last FROM "$sequences" WHERE name = ?`).get(sequence)?.last ?? 0);
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

/** Throws `StoreLocked` if a petstore has the file open, and `Corrupt` if it can't be read at all. */
export function inspectFile(path: string): StoreAtRest {
  if (!existsSync(path)) throw new Corrupt(`${path} is not there: restore all files of DATA_DIR from one backup.`);
  const place = realpathSync(path);
  const hasLog = (statSync(`${place}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  const hadMemory = existsSync(`${place}-shm`);
  const url = pathToFileURL(place);
  // Nobody has it open, so SQLite needs no files beside it: https://sqlite.org/uri.html#uriimmutable
  if (!hasLog) url.searchParams.set("immutable", "1");
  const open = () => {
    const db = new DatabaseSync(url, { readOnly: true });
    try {
      db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get();
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  };
  const run = <R>(step: () => R): R => {
    try {
      return step();
    } catch (error) {
      throw openFailure(error, path);
    }
  };
  const db = run(open);
  const close = () => {
    if (!db.isOpen) return;
    db.close();
    // By which SQLite shared the log among readers: there are none.
    if (hasLog && !hadMemory) rmSync(`${place}-shm`, { force: true });
  };

  function* problems(): Generator<Problem | undefined> {
    const about = (kind: Problem["about"], check: () => unknown): Problem | undefined => {
      try {
        check();
        return undefined;
      } catch (error) {
        return { about: kind, text: (error as Error).message };
      }
    };
    yield about("identity", () => identify(db, path));
    yield about("identity", () => hasLog || checkComplete(db, path));
    const mixed = identityProblem(path, carriedIdentity(db));
    if (mixed !== undefined) yield { about: "identity", text: mixed };
    for (const flaw of db.prepare(`PRAGMA integrity_check(${MAX_FLAWS})`).all()) {
      const text = String(flaw.integrity_check);
      if (text !== "ok") yield { about: /\bindex\b/.test(text) ? "index" : "file", text: `${basename(path)}: ${text}` };
    }
  }

  return {
    ...inspectionOf(db),
    problems: async () => run(() => [...problems()].filter((problem) => problem !== undefined)),
    isInUse: async () => false,
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
    },
    close: async () => close(),
  };
}
