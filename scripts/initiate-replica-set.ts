/**
 * `node scripts/initiate-replica-set.ts` makes one replica set of the servers that MONGODB_URI names, unless they are one
 * already, and ends when it has a primary. Waits for servers that are not there yet, and says what it waits for.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { MongoClient, MongoServerError } from "mongodb";

const ALREADY_INITIALIZED = 23;
const TIME_LIMITS = { serverSelectionTimeoutMS: 2_000, connectTimeoutMS: 2_000, socketTimeoutMS: 30_000 };

const uri = process.env.MONGODB_URI ?? "";
const { hosts, replicaSet: name } = new MongoClient(uri).options;
if (!name) throw new Error("MONGODB_URI must name the replica set: mongodb://one,two,three/?replicaSet=petstore");
const members = hosts.map((host, _id) => ({ _id, host: host.toString() }));

async function ask(uri: string, command: object): Promise<void> {
  await using client = new MongoClient(uri, TIME_LIMITS);
  await client.db("admin").command({ ...command });
}

/** Asks one member, which asks the others. They refuse if one is missing, or has data or another set of its own. */
async function initiate(): Promise<void> {
  try {
    const command = { replSetInitiate: { _id: name, members } };
    await ask(`mongodb://${members[0]?.host}/?directConnection=true`, command);
    console.log(`initiated the replica set ${name}`);
  } catch (error) {
    if (!(error instanceof MongoServerError && error.code === ALREADY_INITIALIZED)) throw error;
  }
}

/** Tries once a second until it works. Each reason to wait is said once. */
async function until(attempt: () => Promise<void>, what: string): Promise<void> {
  for (let said = ""; ; await sleep(1_000)) {
    try {
      return await attempt();
    } catch (error) {
      const waiting = `waiting ${what}: ${(error as Error).message}`;
      if (waiting !== said) console.log(waiting);
      said = waiting;
    }
  }
}

await until(initiate, "to initiate the replica set");
await until(() => ask(uri, { ping: 1 }), "for a primary"); // nobody else answers without being told to
console.log(`the replica set ${name} has a primary`);
