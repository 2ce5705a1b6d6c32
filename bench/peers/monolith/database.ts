import { type Collection, type Db, MongoClient } from "mongodb";
import type { PlainData } from "../../peer.ts";

export type Pet = PlainData["pets"];

export interface Database {
  readonly client: MongoClient;
  readonly pets: Collection<Pet>;
  readonly inventory: Collection<PlainData["inventory"]>;
  readonly orders: Collection<PlainData["orders"]>;
  readonly keys: Collection<PlainData["keys"]>;
  readonly counters: Collection<PlainData["counters"]>;
}

/** Writes are acknowledged when a majority has them in its journals; reads return what can't be rolled back. */
export async function connect(url: string, name: string): Promise<Database> {
  const client = await new MongoClient(url, {
    readConcern: { level: "majority" },
    writeConcern: { w: "majority", journal: true },
  }).connect();
  const db: Db = client.db(name);
  return {
    client,
    pets: db.collection("pets"),
    inventory: db.collection("inventory"),
    orders: db.collection("orders"),
    keys: db.collection("keys"),
    counters: db.collection("counters"),
  };
}
