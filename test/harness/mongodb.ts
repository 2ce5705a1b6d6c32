/** A place in MongoDB for tests that need no faults: on the server of MONGODB_URI, or on a replica set of its own. */
import { randomBytes } from "node:crypto";
import { MongoClient } from "mongodb";
import { mongodMissing, startReplicaSet } from "./mongod.ts";

export const mongodbMissing = mongodMissing && !process.env.MONGODB_URI;

export interface Place extends AsyncDisposable {
  /** Its databases begin with a name that nothing else uses. */
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

/** Credentials are looked up where they were before, which without `authSource` is the URI's database. */
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
