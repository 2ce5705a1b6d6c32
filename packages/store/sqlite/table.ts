/**
 * A collection as a table: `_id`, the document's bytes, and one column for each indexed field. An index of the table
 * holds the rows in which all of its columns are set, and ends with `_id`, so that a page of a list is read off it.
 */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { compareIds, peek } from "../document/codec.ts";
import { type Declaration, indexedFields } from "../engine/collections.ts";
import { beyondPrefix, isKey, type PrefixScan, type Scan } from "../engine/queries.ts";
import type { ChangeLog, LogEntry } from "../engine/table-changes.ts";
import type { Table } from "../engine/table-store.ts";
import type { Key } from "../port.ts";
import type { Row } from "../rows.ts";

/** Index ranges that one statement merges; SQLite refuses more than 500. */
const MAX_RANGES = 100;
/**
 * A statement is prepared for one of these numbers of ranges, and the ranges that are left over match nothing. This bounds the
 * prepared statements, which are kept and take some 3 KB for each range.
 */
const RANGES = [1, 2, 4, 8, 16, 32, 64, MAX_RANGES];
/** Documents that are in memory at once while a new index is filled. */
const FILL_BATCH = 1000;

/** Makes the table match its declaration: new indexes are filled, those no longer declared are dropped. */
export function prepareTable(db: DatabaseSync, declaration: Declaration): void {
  const { name, indexes } = declaration;
  prepareLog(db, declaration);
  const table = quote(name);
  db.exec(`CREATE TABLE IF NOT EXISTS ${table} (_id ANY NOT NULL PRIMARY KEY, doc BLOB NOT NULL) STRICT`);

  const declared = new Map(Object.values(indexes).map((fields) => [indexName(name, fields), fields]));
  const isOld = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL");
  for (const old of names(isOld.all(name))) if (!declared.has(old)) db.exec(`DROP INDEX ${quote(old)}`);

  const fields = indexedFields(declaration);
  const present = names(db.prepare(`PRAGMA table_info(${table})`).all()).filter((column) => column.startsWith(KEY));
  // A column that is not maintained would be wrong if its index were declared again.
  for (const old of present.filter((column) => !fields.some((field) => keyColumn(field) === column))) {
    db.exec(`ALTER TABLE ${table} DROP COLUMN ${quote(old)}`);
  }
  const added = fields.filter((field) => !present.includes(keyColumn(field)));
  for (const field of added) db.exec(`ALTER TABLE ${table} ADD COLUMN ${quote(keyColumn(field))} ANY`);
  if (added.length > 0) fill(db, name, added);

  for (const [index, of] of declared) {
    const columns = of.map((field) => quote(keyColumn(field)));
    const isPresent = columns.map((column) => `${column} IS NOT NULL`).join(" AND ");
    db.exec(`CREATE INDEX IF NOT EXISTS ${quote(index)} ON ${table} (${columns.join(", ")}, _id) WHERE ${isPresent}`);
  }
}

function fill(db: DatabaseSync, name: string, fields: readonly string[]): void {
  const table = quote(name);
  const slice = db.prepare(`SELECT rowid, doc FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ${FILL_BATCH}`);
  const assignments = fields.map((field) => `${quote(keyColumn(field))} = ?`).join(", ");
  const update = db.prepare(`UPDATE ${table} SET ${assignments} WHERE rowid = ?`);
  let last = 0;
  for (;;) {
    const rows = slice.all(last) as unknown as { rowid: number; doc: Uint8Array }[];
    for (const { rowid, doc } of rows) {
      // A document that can't be read must not keep the others out of the index.
      const stored = peek(doc);
      update.run(...fields.map((field) => bind(isKey(stored[field]) ? stored[field] : undefined)), rowid);
      last = rowid;
    }
    if (rows.length < FILL_BATCH) return;
  }
}

/** Reads leave no cursor open. */
export function embeddedTable(db: DatabaseSync, declaration: Declaration): Table {
  const table = quote(declaration.name);
  const fields = indexedFields(declaration);
  const columns = ["_id", "doc", ...fields.map((field) => quote(keyColumn(field)))];
  const select = db.prepare(`SELECT doc FROM ${table} WHERE _id = ?`);
  const insert = db.prepare(
    `INSERT INTO ${table} (${columns.join(", ")}) VALUES (?${", ?".repeat(columns.length - 1)})`,
  );
  const remove = db.prepare(`DELETE FROM ${table} WHERE _id = ?`);
  const statements = new Map<string, StatementSync>();

  const prepared = (sql: string): StatementSync => {
    const statement = statements.get(sql) ?? db.prepare(sql);
    statements.set(sql, statement);
    return statement;
  };

  return {
    log: declaration.shown && embeddedLog(db, declaration.name),
    get: (id) => (select.get(id) as { doc: Uint8Array } | undefined)?.doc,
    put(id, bytes, doc, before) {
      if (!before) return void insert.run(id, bytes, ...fields.map((field) => bind(doc[field])));
      const changed = fields.filter((field) => doc[field] !== before[field]);
      prepared(updateSql(declaration.name, changed)).run(bytes, ...changed.map((field) => bind(doc[field])), id);
    },
    delete: (id) => void remove.run(id),
    list: read,
    listByPrefix: readPrefix,
  };

  function read(scan: Scan): Row[] {
    const rows: Row[] = [];
    const all = ranges(scan);
    for (let i = 0; i < all.length; i += MAX_RANGES) {
      const some = all.slice(i, i + MAX_RANGES);
      const count = RANGES.find((size) => size >= some.length) ?? MAX_RANGES;
      // Nothing equals NULL.
      const none = Array<undefined>(scan.match?.fields.length ?? 0).fill(undefined);
      const bounds = scan.after === undefined ? [] : [scan.after];
      const values = Array.from({ length: count }, (_, n) => [...(some[n] ?? none).map(bind), ...bounds]).flat();
      const found = prepared(listSql(declaration.name, scan, count)).all(...values, scan.limit);
      rows.push(...(found as unknown as Row[]));
    }
    if (all.length > MAX_RANGES) {
      rows.sort(scan.order === "asc" ? (a, b) => compareIds(a._id, b._id) : (a, b) => compareIds(b._id, a._id));
    }
    return rows.slice(0, scan.limit);
  }

  function readPrefix({ field, prefix, after, limit }: PrefixScan): Row[] {
    const from = after ? [after.key, after._id] : [prefix];
    const statement = prepared(prefixSql(declaration.name, field, after !== undefined));
    return statement.all(...from, beyondPrefix(prefix) ?? BEYOND_ALL_TEXT, limit) as unknown as Row[];
  }
}

/** One range of the index for each combination of the requested values; one range of everything without any. */
const ranges = ({ match }: Scan): Key[][] =>
  (match?.values ?? []).reduce<Key[][]>(
    (found, values) => found.flatMap((range) => values.map((value) => [...range, value])),
    [[]],
  );

/**
 * Sets only columns that have changed: SQLite takes a row out of every index of a column that is set, and puts it in
 * again, even at the same place. Each index is another page to read, log and sync, and the more pages, the rarer two
 * changes share one.
 */
function updateSql(name: string, changed: readonly string[]): string {
  const assignments = ["doc", ...changed.map((field) => quote(keyColumn(field)))].map((column) => `${column} = ?`);
  return `UPDATE ${quote(name)} SET ${assignments.join(", ")} WHERE _id = ?`;
}

/** Selects the first rows of `rangeCount` ranges, each already in order; SQLite merges them without sorting. */
export function listSql(name: string, { match, after, order }: Scan, rangeCount: number): string {
  const conditions = (match?.fields ?? []).map((field) => `${quote(keyColumn(field))} = ?`);
  if (after !== undefined) conditions.push(order === "asc" ? "_id > ?" : "_id < ?");
  const where = conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`;
  const range = `SELECT _id, doc FROM ${quote(name)}${where}`;
  return `${Array<string>(rangeCount).fill(range).join(" UNION ALL ")} ORDER BY _id ${order} LIMIT ?`;
}

/** A blob, which comes after every text. */
const BEYOND_ALL_TEXT = new Uint8Array();

/** Selects a range of one index, in its order. */
export function prefixSql(name: string, field: string, goesOn: boolean): string {
  const key = quote(keyColumn(field));
  const from = goesOn ? `(${key}, _id) > (?, ?)` : `${key} >= ?`;
  return `SELECT _id, doc FROM ${quote(name)} WHERE ${from} AND ${key} < ? ORDER BY ${key}, _id LIMIT ?`;
}

export const quote = (name: string) => `"${name.replaceAll('"', '""')}"`;
/** What the names of columns of indexed fields begin with. */
export const KEY = "key_";
const keyColumn = (field: string) => `${KEY}${field}`;
export const indexName = (collection: string, fields: readonly string[]) => `${collection}(${fields.join(",")})`;
const names = (rows: readonly object[]) => (rows as readonly { name: string }[]).map((row) => row.name);

/** A boolean is stored as a blob of one byte, so that it differs from the numbers 0 and 1. */
function bind(value: unknown): null | number | string | Uint8Array {
  if (value === undefined) return null;
  return typeof value === "boolean" ? Uint8Array.of(Number(value)) : (value as number | string);
}

/**
 * The table of a collection's changes, to which each is appended in the transaction that makes it. No collection can have this
 * name.
 */
const logOf = (collection: string) => `"${collection}$changes"`;

/** Makes the table, or drops it if the schema shows nothing: without new changes it would have gaps later. */
function prepareLog(db: DatabaseSync, { name, shown }: Declaration): void {
  const columns = "number INTEGER PRIMARY KEY, at INTEGER NOT NULL, change BLOB NOT NULL";
  if (shown) db.exec(`CREATE TABLE IF NOT EXISTS ${logOf(name)} (${columns}) STRICT`);
  else db.exec(`DROP TABLE IF EXISTS ${logOf(name)}`);
}

/**
 * SQLite numbers a new row one above the highest present. The last change always stays, so no number is used twice.
 * https://sqlite.org/autoinc.html
 */
function embeddedLog(db: DatabaseSync, collection: string): ChangeLog {
  const log = logOf(collection);
  const last = db.prepare(`SELECT number, at FROM ${log} ORDER BY number DESC LIMIT 1`);
  const time = db.prepare(`SELECT at FROM ${log} WHERE number = ?`);
  const after = db.prepare(`SELECT number, at, change FROM ${log} WHERE number > ? ORDER BY number LIMIT ?`);
  const append = db.prepare(`INSERT INTO ${log} (at, change) VALUES (?, ?)`);
  const forget = db.prepare(
    `DELETE FROM ${log} WHERE number <
       (SELECT max(number) FROM (SELECT number, at FROM ${log} ORDER BY number LIMIT 1 + ?) WHERE at < ?)`,
  );
  return {
    last: () => last.get() as LogEntry | undefined,
    timeOf: (number) => (time.get(number) as { at: number } | undefined)?.at,
    after: (number, limit) => after.all(number, limit) as unknown as LogEntry[],
    append: (at, change) => Number(append.run(at, change).lastInsertRowid),
    forget: (before, limit) => Number(forget.run(limit, before).changes),
  };
}
