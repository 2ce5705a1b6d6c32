/** Lists as queries to MongoDB: each uses its own index, and reads no more keys than it returns. */
import type { Fields } from "../document/codec.ts";
import type { Scan } from "../engine/indexes.ts";
import type { Id } from "../port.ts";
import { type Database, find, findInOneAnswer } from "./database.ts";
import { withTimeout } from "./deadline.ts";

/** Most documents in a list that may share a query with others. */
const SHORT = 100;
/** MongoDB's largest limit is 2^31 - 1, and `batchSize` is one more than the limit of a list. */
const MAX_LIMIT = 2 ** 31 - 2;

/** The key of an index, which is also its hint. */
export const keyOf = (fields: readonly string[], direction: 1 | -1 = 1) =>
  Object.fromEntries([...fields, "_id"].map((field) => [field, direction]));

/** Whether a list may share a query with others: only if it is short, and its index alone gives the order. */
export const isShort = ({ match, limit }: Scan): boolean =>
  limit <= SHORT && (match?.values.every((values) => values.length === 1) ?? true);

/** The documents of each list, as bytes. Several lists at once must all be `isShort`. */
export async function listEach(
  database: Database,
  collection: string,
  scans: readonly Scan[],
): Promise<Uint8Array[][]> {
  const together = scans.length > 1 ? await listTogether(database, collection, scans) : undefined;
  return together ?? Promise.all(scans.map((scan) => listOne(database, collection, scan)));
}

async function listOne(database: Database, collection: string, scan: Scan): Promise<Uint8Array[]> {
  // MongoDB can't follow a hint for a query that nothing can match.
  if (scan.match?.values.some((values) => values.length === 0)) return [];
  const limit = Math.min(scan.limit, MAX_LIMIT);
  const hint = keyOf(scan.match?.fields ?? []);
  const query = { filter: filterOf(scan), hint, sort: { _id: directionOf(scan) }, limit, batchSize: limit + 1 };
  return database.inSession((session) => find(database, collection, query, { session }));
}

/** Separates two lists: a document without an `_id`, the shortest in BSON. */
const BOUNDARY = { $unionWith: { pipeline: [{ $documents: [{}] }] } };
const BOUNDARY_BYTES = 5;

/**
 * Reads several lists with one command. Twenty lists in one command cost this process a third and MongoDB two thirds of
 * what twenty commands cost. Undefined when one answer does not hold all lists one after the other.
 */
async function listTogether(database: Database, collection: string, scans: readonly Scan[]) {
  const pipeline = scans.flatMap((scan, i): object[] =>
    i === 0 ? stagesOf(scan) : [BOUNDARY, { $unionWith: { coll: collection, pipeline: stagesOf(scan) } }],
  );
  const batchSize = scans.reduce((sum, { limit }) => sum + limit + 1, 0);
  const command = { aggregate: collection, pipeline, cursor: { batchSize }, readConcern: { level: "majority" } };
  const found = await database.inSession((session) =>
    withTimeout("repeatable", findInOneAnswer(database, collection, command, { session })),
  );
  return found && splitAtBoundaries(found, scans);
}

/**
 * Undefined when their number and lengths do not fit the lists in order: MongoDB returns the lists in order, but does not
 * promise it (https://www.mongodb.com/docs/manual/reference/operator/aggregation/unionWith/).
 */
export function splitAtBoundaries(
  found: readonly Uint8Array[],
  scans: readonly Pick<Scan, "limit">[],
): Uint8Array[][] | undefined {
  const lists: Uint8Array[][] = [[]];
  for (const bytes of found) {
    if (bytes.length === BOUNDARY_BYTES) lists.push([]);
    else lists.at(-1)?.push(bytes);
  }
  const areThey = lists.length === scans.length && lists.every((list, i) => list.length <= (scans[i]?.limit ?? 0));
  return areThey ? lists : undefined;
}

/**
 * A pipeline stage takes no hint. Sorting by all fields of the index, which are equal except `_id`, leaves no other index
 * to use.
 */
const stagesOf = (scan: Scan) => [
  { $match: filterOf(scan) },
  { $sort: keyOf(scan.match?.fields ?? [], directionOf(scan)) },
  { $limit: scan.limit },
];

const directionOf = ({ order }: Scan) => (order === "asc" ? 1 : -1);

function filterOf({ match, after, order }: Scan): Fields {
  const isBeyond: { _id?: Fields & Record<string, Id> } =
    after === undefined ? {} : { _id: order === "asc" ? { $gt: after } : { $lt: after } };
  const fields = match?.fields.map((field, i) => [field, { $in: match.values[i] }]) ?? [];
  return { ...Object.fromEntries(fields), ...isBeyond };
}
