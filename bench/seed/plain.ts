/** Fills the database of a plain peer with documents as in `PlainData`. */
import { MongoClient } from "mongodb";
import type { PlainData } from "../peer.ts";
import { petOf } from "./pets.ts";

const BATCH = 5000;

/** Drops what was in the database before. */
export async function fillPlain(uri: string, database: string, pets: number): Promise<void> {
  await using client = new MongoClient(uri);
  const db = client.db(database, { writeConcern: { w: "majority", journal: true } });
  await db.dropDatabase();
  const collection = <N extends keyof PlainData>(name: N) => db.collection<PlainData[N]>(name);
  await collection("pets").createIndexes(
    [["categoryId"], ["status"], ["categoryId", "status"]].map((fields) => ({
      key: Object.fromEntries([...fields, "_id"].map((field) => [field, 1])),
    })),
  );
  await collection("orders").createIndex({ petId: 1, _id: 1 });
  await collection("keys").createIndex({ at: 1 }, { expireAfterSeconds: 24 * 3600 });
  await collection("counters").insertOne({ _id: "orders", last: 0 });
  for (let from = 1; from <= pets; from += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, pets - from + 1) }, (_, i) => petOf(from + i));
    await collection("pets").insertMany(
      batch.map(({ id, name, categoryId, status }) => ({ _id: id, name, categoryId, status })),
    );
    await collection("inventory").insertMany(batch.map(({ id, quantity, status }) => ({ _id: id, quantity, status })));
  }
}

/** Counts the orders, and the units that are missing from the stock. In a consistent peer the numbers are equal. */
export async function countPlain(uri: string, database: string, pets: number) {
  await using client = new MongoClient(uri);
  const db = client.db(database);
  const orders = await db.collection<PlainData["orders"]>("orders").countDocuments();
  const [left] = await db
    .collection<PlainData["inventory"]>("inventory")
    .aggregate<{ units: number }>([{ $group: { _id: null, units: { $sum: "$quantity" } } }])
    .toArray();
  let units = 0;
  for (let id = 1; id <= pets; id++) units += petOf(id).quantity;
  return { orders, taken: units - (left?.units ?? 0) };
}
