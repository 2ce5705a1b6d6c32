/** Starts one replica set for all tests of a run. Each test has its own databases there; see `openPlace`. */
import { startReplicaSet } from "./mongod.ts";
import { mongodbMissing } from "./mongodb.ts";

export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (mongodbMissing || process.env.MONGODB_URI) return;
  const set = await startReplicaSet();
  process.env.MONGODB_URI = set.uri;
  return set.stop;
}
