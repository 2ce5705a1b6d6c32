/** Lists, read off an index. */
import type { Fields } from "../document/codec.ts";
import type { Scan } from "../engine/indexes.ts";
import type { Id } from "../port.ts";
import { type Database, find, type Raw } from "./database.ts";

/** What an index is made of, and its hint. */
export const keyOf = (fields: readonly string[]) =>
  Object.fromEntries([...fields, "_id"].map((field) => [field, 1 as const]));

export type List = (scan: Scan) => Promise<readonly Uint8Array[]>;

export const createLists =
  (database: Database, raw: Raw): List =>
  (scan) =>
    query(database, raw, scan);

function query(database: Database, raw: Raw, { match, after, limit, order }: Scan): Promise<Uint8Array[]> {
  // A hint can't be followed by a query that nothing can match.
  if (match?.values.some((values) => values.length === 0)) return Promise.resolve([]);
  const isBeyond: { _id?: Fields & Record<string, Id> } =
    after === undefined ? {} : { _id: order === "asc" ? { $gt: after } : { $lt: after } };
  const fields = match?.fields.map((field, i) => [field, { $in: match.values[i] }]) ?? [];
  const options = {
    hint: keyOf(match?.fields ?? []),
    sort: { _id: order === "asc" ? 1 : -1 },
    limit: Math.min(limit, 2 ** 31 - 2),
    batchSize: Math.min(limit, 2 ** 31 - 2) + 1,
  };
  return database.inSession((session) =>
    find(raw, { ...Object.fromEntries(fields), ...isBeyond }, { ...options, session }),
  );
}
