import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";
import { encode } from "../document/codec.ts";
import type { Declaration } from "../engine/collections.ts";
import type { Match } from "../engine/queries.ts";
import { directoryForEach } from "../fixtures/directory.ts";
import { embeddedTable, listSql, prefixSql, prepareTable } from "./table.ts";

const dir = directoryForEach();

const PETS: Declaration = { name: "pets", indexes: { shelf: ["categoryId", "status"], listed: ["listed"] } };
const shelf = (statuses: readonly string[]): Match => ({ fields: ["categoryId", "status"], values: [[1], statuses] });

const pet = (id: number) => ({
  ...{ _id: id, rev: 1, listed: true },
  ...{ categoryId: id % 3, status: id % 2 ? "sold" : "pending" },
});
function filled(count: number, path = ":memory:") {
  const db = new DatabaseSync(path);
  prepareTable(db, PETS);
  const table = embeddedTable(db, PETS);
  db.exec("BEGIN");
  for (let id = 1; id <= count; id++) table.put(id, encode(pet(id)), pet(id), undefined);
  db.exec("COMMIT");
  return db;
}
const plan = (db: DatabaseSync, sql: string) =>
  db
    .prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .all()
    .map((row) => String(row.detail));

test("a page is read off the index: no scan of the table, no sorting, however many values are asked for", () => {
  const db = filled(100);
  for (const order of ["asc", "desc"] as const) {
    for (const after of [undefined, 50]) {
      for (const [match, ranges] of [
        [shelf(["sold"]), 1],
        [shelf(["sold", "pending"]), 2],
        [shelf(["sold", "pending", "available"]), 3],
        [{ fields: ["listed"], values: [[true]] } as Match, 1],
      ] as const) {
        const steps = plan(db, listSql("pets", { match, after, limit: 10, order }, ranges));
        const searches = steps.filter((step) => step.startsWith("SEARCH"));
        const index = `SEARCH pets USING INDEX pets(${match.fields})`;
        expect(searches).toHaveLength(ranges);
        expect(searches.filter((step) => !step.startsWith(index))).toEqual([]);
        expect(searches.every((step) => step.includes("_id") === (after !== undefined))).toBe(true);
        expect(steps.filter((step) => /SCAN|TEMP B-TREE/.test(step))).toEqual([]);
      }
      const everything = plan(db, listSql("pets", { match: undefined, after, limit: 10, order }, 1));
      expect(everything).toHaveLength(1);
      expect(everything[0]).toContain("USING INDEX sqlite_autoindex_pets_1");
    }
  }
});

test("so is a page of what begins alike, from any place in it", () => {
  const db = new DatabaseSync(":memory:");
  prepareTable(db, { name: "pets", indexes: { name: ["name"] } });
  const search = "SEARCH pets USING INDEX pets(name)";
  expect(plan(db, prefixSql("pets", "name", false))).toEqual([`${search} (key_name>? AND key_name<?)`]);
  expect(plan(db, prefixSql("pets", "name", true))).toEqual([`${search} ((key_name,_id)>(?,?) AND key_name<?)`]);
});

test("a change writes the page of its document, and those of an index only where it moves in it", () => {
  const db = filled(10_000, join(dir.path, "pet.db"));
  db.exec("PRAGMA journal_mode = WAL");
  const table = embeddedTable(db, PETS);
  const pagesOf = (change: object): unknown => {
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    const changed = { ...pet(5000), ...change, rev: 2 };
    table.put(5000, encode(changed), changed, pet(5000));
    return db.prepare("PRAGMA wal_checkpoint(PASSIVE)").get()?.log;
  };
  expect(pagesOf({})).toBe(1);
  // It leaves one page of the index for another.
  expect(pagesOf({ status: "sold" })).toBe(3);
  db.close();
});

test("few statements are kept, however many values are asked for, and find no more than these", () => {
  const db = filled(300);
  const prepare = vi.spyOn(db, "prepare");
  const table = embeddedTable(db, PETS);
  prepare.mockClear();
  for (let count = 1; count <= 150; count++) {
    const values = Array.from({ length: count }, (_, i) => i);
    const match = { fields: ["categoryId", "status"], values: [values, ["sold"]] };
    const sold = Math.min(count, 3) * 50;
    expect(table.list({ match, after: undefined, limit: 999, order: "asc" })).toHaveLength(sold);
    expect(table.list({ match, after: 150, limit: 999, order: "desc" })).toHaveLength(sold / 2);
  }
  expect(prepare.mock.calls.length).toBeLessThanOrEqual(16);
});

test("an index leaves out the documents without all of its fields", () => {
  const db = filled(10);
  const throughIndex = (condition: string) =>
    db.prepare(`SELECT count(*) FROM pets INDEXED BY "pets(categoryId,status)" WHERE ${condition}`);
  expect(() => throughIndex("true")).toThrow("no query solution");
  expect(() => throughIndex("key_categoryId NOTNULL")).toThrow("no query solution");
  expect(() => throughIndex("key_categoryId NOTNULL AND key_status NOTNULL")).not.toThrow();
});

test("a new index is filled slice by slice from all documents", () => {
  const db = filled(2500);
  prepareTable(db, { name: "pets", indexes: { rev: ["rev", "listed"] } });
  const table = embeddedTable(db, { name: "pets", indexes: { rev: ["rev", "listed"] } });
  const match = { fields: ["rev", "listed"], values: [[1], [true]] };
  expect(table.list({ match, after: undefined, limit: 9999, order: "asc" })).toHaveLength(2500);
});

test("indexes and columns that are no longer declared are gone", () => {
  const db = filled(3);
  prepareTable(db, { name: "pets", indexes: { listed: ["listed"] } });
  const columns = db.prepare("SELECT name FROM pragma_table_info('pets')").all();
  const indexes = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql NOTNULL").all();
  expect(columns.map((row) => row.name)).toEqual(["_id", "doc", "key_listed"]);
  expect(indexes.map((row) => row.name)).toEqual(["pets(listed)"]);
});

test("a damaged document is in no new index, and keeps no other out of it", () => {
  const db = filled(3);
  db.prepare("UPDATE pets SET doc = ? WHERE _id = 2").run(Uint8Array.of(1, 2, 3));
  const declaration = { name: "pets", indexes: { rev: ["rev"] } };
  prepareTable(db, declaration);
  const match = { fields: ["rev"], values: [[1]] };
  const rows = embeddedTable(db, declaration).list({
    match,
    after: undefined,
    limit: 9,
    order: "asc",
  });
  expect(rows.map(({ _id }) => _id)).toEqual([1, 3]);
});

test("a page shows what has changed since it was read", () => {
  const table = embeddedTable(filled(10), PETS);
  const scan = { match: shelf(["sold"]), after: undefined, limit: 9, order: "asc" } as const;
  const idsOf = () => table.list(scan).map(({ _id }) => _id);
  expect(idsOf()).toEqual([1, 7]);
  const added = { _id: 4, rev: 2, categoryId: 1, status: "sold" };
  table.put(4, encode(added), added, pet(4));
  expect(idsOf()).toEqual([1, 4, 7]);
  table.delete(1);
  expect(idsOf()).toEqual([4, 7]);
});
