/** Lists as queries to MongoDB: each uses its own index, and reads no more keys than it returns. */
import type { Fields } from "../document/codec.ts";
import { beyondPrefix, type PrefixScan, type Scan } from "../engine/queries.ts";
import type { Id } from "../port.ts";
import { type Database, find, type Raw } from "./database.ts";
import { shareQueries } from "./shared-query.ts";
import { createTurns } from "./turns.ts";

/** Most lists of a collection at a time: they leave most of the driver's 100 connections to reads by `_id` and to writes. */
const MAX_LISTS = 32;
/** MongoDB's largest limit is 2^31 - 1, and `batchSize` is one more than the limit of a list. */
const MAX_LIMIT = 2 ** 31 - 2;

/** The key of an index, which is also its hint. */
export const keyOf = (fields: readonly string[], direction: 1 | -1 = 1) =>
  Object.fromEntries([...fields, "_id"].map((field) => [field, direction]));

/** The documents of a list, as bytes: the same array for all callers that share it. */
export function createLists(database: Database, raw: Raw) {
  const inTurn = createTurns(MAX_LISTS);
  return shareQueries<Scan | PrefixScan, readonly Uint8Array[]>(async (scan, limits) => {
    const isByPrefix = "prefix" in scan;
    // MongoDB can't follow a hint for a query that nothing can match.
    if (!isByPrefix && scan.match?.values.some((values) => values.length === 0)) return [];
    const limit = Math.min(scan.limit, MAX_LIMIT);
    const query = { ...(isByPrefix ? prefixQueryOf(scan) : queryOf(scan)), limit, batchSize: limit + 1 };
    return inTurn(limits.signal, () =>
      database.inSession((session) => find(database, raw.collectionName, query, { session, limits })),
    );
  });
}

function queryOf({ match, after, order }: Scan) {
  const isBeyond: { _id?: Fields & Record<string, Id> } =
    after === undefined ? {} : { _id: order === "asc" ? { $gt: after } : { $lt: after } };
  const fields = match?.fields.map((field, i) => [field, { $in: match.values[i] }]) ?? [];
  return {
    filter: { ...Object.fromEntries(fields), ...isBeyond },
    hint: keyOf(match?.fields ?? []),
    sort: { _id: order === "asc" ? 1 : -1 },
  };
}

/** Strings are compared by their bytes. The two ranges of a page that goes on are merged without sorting. */
export function prefixQueryOf({ field, prefix, after }: PrefixScan) {
  const below = beyondPrefix(prefix);
  const end = below === undefined ? {} : { $lt: below };
  const filter = after
    ? { $or: [{ [field]: after.key, _id: { $gt: after._id } }, { [field]: { $gt: after.key, ...end } }] }
    : { [field]: { $gte: prefix, ...end } };
  return { filter, hint: keyOf([field]), sort: keyOf([field]) };
}
