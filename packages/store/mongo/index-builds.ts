/** Builds the indexes of a collection: when it is opened, and again when a query finds that they are gone. */
import { type Db, type IndexDescription, MongoServerError } from "mongodb";
import type { Declaration } from "../engine/queries.ts";
import { Corrupt } from "../port.ts";
import { connect } from "./connect.ts";
import { keyOf } from "./lists.ts";

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
