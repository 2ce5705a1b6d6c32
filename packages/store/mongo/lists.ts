/**
 * Lists as queries to MongoDB: each uses its own index, and reads no more keys than it returns. The indexes are built when the
 * collection is opened, and again when a query finds that they are gone.
 */
import { type Db, type IndexDescription, MongoServerError } from "mongodb";
import type { Fields } from "../document/codec.ts";
import type { Declaration } from "../engine/collections.ts";
import { beyondPrefix, type PrefixScan, type Scan } from "../engine/queries.ts";
import { Corrupt, type Id } from "../port.ts";
import { connect } from "./connect.ts";
import { type Database, find, type Raw } from "./database.ts";
import { createTurns, shareQueries } from "./shared-query.ts";

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

/** BadValue: the answer to a query that names an index which does not exist. */
const NO_SUCH_INDEX = 2;

type Options = Parameters<typeof connect>[2];

export type IndexBuilds = ReturnType<typeof indexBuilds>;

/** `patient`: the database on a client without a socket timeout. */
export function indexBuilds(db: Db, patient: () => Db, declaration: Declaration, options: Options) {
  let underWay: Promise<void> | undefined;
  const buildAgain = () => {
    options.log.warn(`an index of ${declaration.name} is gone: building what is missing`);
    return buildIndexes(db, patient, declaration, options);
  };
  return {
    build: () => buildIndexes(db, patient, declaration, options),
    /**
     * Runs a query. If an index that it names is gone, as after the collection was dropped, builds all of them before it
     * rejects: then the caller can try again.
     */
    async withIndexes<R>(query: () => Promise<R>): Promise<R> {
      try {
        return await query();
      } catch (error) {
        if (error instanceof MongoServerError && error.code === NO_SUCH_INDEX) {
          underWay ??= buildAgain().finally(() => {
            underWay = undefined;
          });
          await underWay;
        }
        throw error;
      }
    },
  };
}

/**
 * Nearly always they exist already, which one command finds out. Building them may take longer than any call should: if
 * that command fails, it is repeated without a socket timeout.
 */
async function buildIndexes(usual: Db, patient: () => Db, declaration: Declaration, options: Options): Promise<void> {
  const indexes = indexDescriptions(declaration);
  if (indexes.length === 0) return;
  // A majority is enough: a member that is down must not delay a start.
  const build = (db: Db) =>
    db
      .collection(declaration.name)
      .createIndexes(indexes, { commitQuorum: "majority" })
      .catch((error: Error) => {
        throw inTheWay(error) ? blocked(db, declaration, error) : error;
      });
  try {
    await build(usual);
  } catch {
    const db = patient();
    await connect(db.client, () => build(db), options);
  }
}

/** An index holds the documents in which all of its fields are present. None is unique. */
export const indexDescriptions = ({ indexes }: Pick<Declaration, "indexes">): IndexDescription[] =>
  Object.values(indexes).map((fields) => ({
    key: keyOf(fields),
    partialFilterExpression: Object.fromEntries(fields.map((field) => [field, { $exists: true }])),
  }));

/** An existing index has the same name, or the same fields and another name (IndexOptionsConflict, IndexKeySpecsConflict). */
const inTheWay = (error: Error) => error instanceof MongoServerError && (error.code === 85 || error.code === 86);
const blocked = ({ databaseName }: Db, { name }: Declaration, { message }: Error) =>
  new Corrupt(
    `The collection ${name} of the database ${databaseName} has an index that is in the way of one of the petstore's: drop it. ` +
      `MongoDB says: ${message}`,
  );
