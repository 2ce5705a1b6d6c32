/** Databases in MongoDB for tests without faults: on the server of MONGODB_URI, or on a new replica set. */
import { randomBytes } from "node:crypto";
import { MongoClient } from "mongodb";
import { mongodMissing, startReplicaSet } from "./mongod.ts";

export const mongodbMissing = mongodMissing && !process.env.MONGODB_URI;

export interface Place extends AsyncDisposable {
  /** The names of its databases have a prefix that nothing else uses. */
  readonly uri: string;
  /** Removes what was stored. */
  stop(): Promise<void>;
}

export async function openPlace(given = process.env.MONGODB_URI): Promise<Place> {
  if (!given) return startReplicaSet();
  const prefix = `test_${randomBytes(6).toString("hex")}`;
  const uri = withDatabaseName(given, prefix);
  const stop = () => dropAll(uri, prefix);
  return { uri, stop, [Symbol.asyncDispose]: stop };
}

/** The URI with another database. Credentials are still looked up in the old one, which is the default without `authSource`. */
export function withDatabaseName(uri: string, name: string): string {
  const [, server = "", database = "", query = ""] = /^([^/]*\/\/[^/?]*)\/?([^?]*)\??(.*)$/.exec(uri) ?? [];
  const source = server.includes("@") && !/(^|&)authSource=/i.test(query) ? [`authSource=${database || "admin"}`] : [];
  return `${server}/${name}?${[...source, query].filter(Boolean).join("&")}`;
}

async function dropAll(uri: string, prefix: string): Promise<void> {
  const client = new MongoClient(uri);
  try {
    const { databases } = await client.db("admin").admin().listDatabases({ nameOnly: true });
    const ours = databases.filter(({ name }) => name.startsWith(`${prefix}_`));
    for (const { name } of ours) await client.db(name).dropDatabase();
  } finally {
    await client.close();
  }
}
