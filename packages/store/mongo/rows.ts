/** The rows of one service's database, also as they were at a cluster time. */
import "./driver-on-demand.ts";
import { isDeepStrictEqual } from "node:util";
import { BSON, type Db, type Document, type FindOptions, MongoServerError, type Timestamp } from "mongodb";
import { decodeSame, peek, readBson } from "../document/codec.ts";
import { Corrupt, type Id } from "../port.ts";
import type { Inspection, Records, Row } from "../rows.ts";
import { FIELD } from "./operation-log.ts";

export const SEQUENCES = "_sequences";
/** SnapshotTooOld, SnapshotUnavailable */
const TOO_OLD = new Set<unknown>([239, 246]);

export function rowsIn(db: Db, at?: Timestamp) {
  async function find(collection: string, query: FindOptions, filter: Document = {}): Promise<Uint8Array[]> {
    // By itself the driver repeats what an election or a lost connection ends, and can't read at a cluster time.
    if (!at)
      return (await db
        .collection(collection)
        .find(filter, { ...query, raw: true })
        .toArray()) as never;
    const readConcern = { level: "snapshot", atClusterTime: at };
    try {
      return await db.runCursorCommand({ find: collection, filter, ...query, readConcern }, { raw: true }).toArray();
    } catch (error) {
      if (!(error instanceof MongoServerError) || !TOO_OLD.has(error.code)) throw error;
      throw new SnapshotGone();
    }
  }

  return {
    find,
    async page(collection, limit, after) {
      // A bound of the index, and no condition: that would pass over an `_id` of another type.
      const from = after === undefined ? {} : { min: { _id: after } };
      const size = after === undefined ? limit : limit + 1;
      const query = { hint: { _id: 1 }, sort: { _id: 1 }, ...from, limit: size, batchSize: size } as const;
      const rows = (await find(collection, query)).map(rowOf);
      return rows[0] && isDeepStrictEqual(rows[0]._id, after) ? rows.slice(1) : rows.slice(0, limit);
    },
    async sequences() {
      const all = await find(SEQUENCES, { sort: { _id: 1 } });
      return all.map(peek).map(({ _id, last }) => [String(_id), Number(last)] as const);
    },
  } satisfies Pick<Inspection, "page" | "sequences"> & { find: unknown };
}

export const rowOf = (doc: Uint8Array): Row => ({ _id: (readBson(doc) ?? peek(doc))._id as Id, doc });

export function recordsIn(db: Db, at?: Timestamp): Records {
  const { find, ...rows } = rowsIn(db, at);
  return {
    ...rows,
    async collections() {
      const all = await db.listCollections({}, { nameOnly: true }).toArray();
      return all
        .map(({ name }) => name)
        .filter((name) => !/^(_|system\.)/.test(name))
        .sort();
    },
    count: (collection) => db.collection(collection).estimatedDocumentCount(),
    fields({ doc }) {
      const { [FIELD]: _, ...fields } = decodeSame(doc) ?? {};
      return "_id" in fields ? fields : undefined;
    },
    async last(collection) {
      const [found] = await find(collection, { sort: { _id: -1 }, limit: 1, projection: { _id: 1 } });
      return found && (peek(found)._id as Id);
    },
    async add(collection, added) {
      const documents = added.map((row) => {
        const fields = decodeSame(row.doc);
        // No process remembers a change of it.
        return fields ? { ...fields, [FIELD]: [] } : damagedDocument(row, collection);
      });
      await db.collection(collection).insertMany(documents as { _id: never }[], { ordered: true });
    },
    async setSequence(name, last) {
      await db.collection<{ _id: string }>(SEQUENCES).replaceOne({ _id: name }, { last }, { upsert: true });
    },
  };
}

/** Throws `Corrupt` unless MongoDB can have it under its id. */
function damagedDocument({ _id, doc }: Row, collection: string): BSON.Document {
  try {
    if (peek(doc)._id === _id) return BSON.deserialize(doc, { promoteValues: false });
  } catch {} // reported below
  throw new Corrupt(`Document ${_id} of ${collection} is so damaged that MongoDB can't have it: remove it first.`);
}

/** Reading took longer than the server keeps what was. */
export class SnapshotGone extends Error {
  override readonly name = "SnapshotGone";
  readonly code = "SNAPSHOT_GONE";
  constructor() {
    super(
      "MongoDB keeps what was for 5 minutes, unless it is told otherwise, and reading took longer. Tell each member of the " +
        "replica set to keep it for an hour, and begin anew: " +
        "db.adminCommand({ setParameter: 1, minSnapshotHistoryWindowInSeconds: 3600 })",
    );
  }
}
