/** Lists, as queries that those who ask the same share. */
import type { Fields } from "../document/codec.ts";
import type { Scan } from "../engine/indexes.ts";
import type { Id } from "../port.ts";
import { type Database, find, type Raw } from "./database.ts";
import { shareQueries } from "./shared-queries.ts";

/** What an index is made of, and its hint. */
export const keyOf = (fields: readonly string[]) =>
  Object.fromEntries([...fields, "_id"].map((field) => [field, 1 as const]));

/** Resolves to the same array for all that share a query. */
export type List = (scan: Scan) => Promise<readonly Uint8Array[]>;

export const createLists = (database: Database, raw: Raw): List =>
  shareQueries((scan: Scan) => query(database, raw, scan), JSON.stringify);

function query(database: Database, raw: Raw, { match, after, limit, order }: Scan): Promise<Uint8Array[]> {
  // A hint can't be followed by a query that nothing can match.
  if (match?.values.some((values) => values.length === 0)) return Promise.resolve([]);
  const isBeyond: { _id?: Fields & Record<string, Id> } =
    after === undefined ? {} : { _id: order === "asc" ? { $gt: after } : { $lt: after } };
  const fields = match?.fields.map((field, i) => [field, { $in: match.values[i] }]) ?? [];
  const how = {
    hint: keyOf(match?.fields ?? []),
    sort: { _id: order === "asc" ? 1 : -1 },
    limit: Math.min(limit, 2 ** 31 - 2),
    batchSize: Math.min(limit, 2 ** 31 - 2) + 1,
  };
  const filter = { ...Object.fromEntries(fields), ...isBeyond };
  return database.inSession((session) => find(database, raw.collectionName, { filter, ...how }, { session }));
}
