/** The rows of an open file, which may be in use: nothing stays open between two calls. */
import type { DatabaseSync } from "node:sqlite";
import { decodeSame } from "../document/codec.ts";
import type { Id } from "../port.ts";
import type { Records, Row, Rows } from "../rows.ts";
import { KEY, quote } from "./table.ts";

export const hasTable = (db: DatabaseSync, name: string): boolean =>
  db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== undefined;

export function rowsIn(db: DatabaseSync): Rows {
  return {
    async collections() {
      const tables =
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%$%' AND name NOT LIKE 'sqlite_%'";
      return db
        .prepare(`${tables} ORDER BY name`)
        .all()
        .map(({ name }) => String(name));
    },
    count: async (collection) => Number(db.prepare(`SELECT count(*) AS n FROM ${quote(collection)}`).get()?.n),
    async page(collection, limit, after) {
      if (!hasTable(db, collection)) return [];
      const [where, bounds] = after === undefined ? ["", []] : ["WHERE _id > ?", [after]];
      const page = db.prepare(`SELECT * FROM ${quote(collection)} ${where} ORDER BY _id LIMIT ?`);
      return page.all(...bounds, limit).map(rowOf);
    },
    async sequences() {
      if (!hasTable(db, "$sequences")) return [];
      const all = db.prepare(`SELECT name, last FROM "$sequences" ORDER BY name`).all();
      return all.map(({ name, last }) => [String(name), Number(last)] as const);
    },
  };
}

export function rowOf(columns: object): Row {
  const { _id, doc, ...keys } = columns as { readonly _id: Id; readonly doc: Uint8Array };
  const indexed: Record<string, unknown> = {};
  for (const [column, value] of Object.entries(keys as object))
    if (value !== null) indexed[column.slice(KEY.length)] = value instanceof Uint8Array ? value[0] === 1 : value;
  return { _id, doc, indexed };
}

export function recordsIn(db: DatabaseSync): Records {
  return {
    ...rowsIn(db),
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
