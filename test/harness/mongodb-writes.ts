/** Watches all writes of a petstore's services to MongoDB, in the order of its operation log. */
import { type ChangeStreamDocument, MongoClient } from "mongodb";
import { databaseName } from "../../packages/store/mongo/mongo.ts";
import { serviceNames } from "../../processes/names.ts";
import { type CollectionName, isRecord } from "../checker/state.ts";
import type { Stored } from "../simulation/disk.ts";

export interface Write {
  readonly collection: CollectionName;
  readonly after: Stored;
}

export interface Writes extends AsyncDisposable {
  /** The writes so far. Those of answered requests arrive soon. */
  readonly all: readonly Write[];
}

export async function watchWrites(uri: string): Promise<Writes> {
  const client = new MongoClient(uri);
  const databases = serviceNames.map((name) => databaseName(uri, name));
  const { operationTime } = await client.db("admin").command({ ping: 1 });
  const stream = client.watch([{ $match: { "ns.db": { $in: databases } } }], { startAtOperationTime: operationTime });
  const all: Write[] = [];
  stream.on("change", (change: ChangeStreamDocument) => {
    if (change.operationType !== "insert" && change.operationType !== "replace") return;
    const collection = change.ns.coll;
    if (!isRecord(collection)) return;
    // A field of the engine itself.
    const { _operations, ...after } = change.fullDocument as unknown as Stored;
    all.push({ collection, after });
  });
  return {
    all,
    async [Symbol.asyncDispose]() {
      await stream.close();
      await client.close();
    },
  };
}
