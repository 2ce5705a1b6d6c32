/** The changes of a collection as a table, to which each change is appended in the transaction that makes it. */
import type { DatabaseSync } from "node:sqlite";
import type { Declaration } from "../engine/indexes.ts";
import type { ChangeLog, LogEntry } from "../engine/table-changes.ts";

/** No collection can have this name. */
const logOf = (collection: string) => `"${collection}$changes"`;

/** Makes the table, or drops it if the schema shows nothing: without new changes it would have gaps later. */
export function prepareLog(db: DatabaseSync, { name, shown }: Declaration): void {
  const columns = "number INTEGER PRIMARY KEY, at INTEGER NOT NULL, change BLOB NOT NULL";
  if (shown) db.exec(`CREATE TABLE IF NOT EXISTS ${logOf(name)} (${columns}) STRICT`);
  else db.exec(`DROP TABLE IF EXISTS ${logOf(name)}`);
}

/**
 * SQLite numbers a new row one above the highest present. The last change always stays, so no number is used twice.
 * https://sqlite.org/autoinc.html
 */
export function embeddedLog(db: DatabaseSync, collection: string): ChangeLog {
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
