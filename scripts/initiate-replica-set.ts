/**
 * `node scripts/initiate-replica-set.ts` makes one replica set of the servers that MONGODB_URI names, unless they are one
 * already, and ends when it has a primary. Waits for servers that are not there yet, and says what it waits for.
 *
 * If MONGODB_URI names a user, the servers require authentication. This user is made first, and then the users of the
 * connection strings in the files that are named as arguments. Each of those may read and write the database of one
 * service and nothing else. A server that has no users yet trusts clients on its own machine (MongoDB's "localhost
 * exception"), so this has to run on the machine of the first server, or in its network namespace.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { mongodbUri, readEnvironment, required } from "@petstore/runtime/environment";
import { MongoClient, MongoServerError } from "mongodb";
import { databaseName } from "../packages/store/mongo/mongo.ts";

/** Error codes of MongoDB. */
const UNAUTHORIZED = 13;
const AUTHENTICATION_FAILED = 18;
const ALREADY_INITIALIZED = 23;
const USER_EXISTS = 51003;
const TIME_LIMITS = { serverSelectionTimeoutMS: 2_000, connectTimeoutMS: 2_000, socketTimeoutMS: 30_000 };

const uri = readEnvironment(process.env, { MONGODB_URI: required(mongodbUri) }).MONGODB_URI.reveal();
const { hosts, replicaSet: name, credentials: admin } = new MongoClient(uri).options;
const [first] = hosts;
if (!name || !first)
  throw new Error("MONGODB_URI must name the replica set: mongodb://one,two,three/?replicaSet=petstore");
const alone = `mongodb://${admin ? `127.0.0.1:${first.port}` : first}/?directConnection=true`;

/** Until there are users only the first server can become the primary, because the first user can only be made there. */
const members = hosts.map((host, _id) => ({ _id, host: `${host}`, ...(admin && _id > 0 && { priority: 0 }) }));

async function ask(uri: string, command: object) {
  await using client = new MongoClient(uri, TIME_LIMITS);
  return await client.db("admin").command({ ...command });
}

const isCode = (error: unknown, ...codes: number[]): boolean =>
  error instanceof MongoServerError && codes.includes(Number(error.code));

/** Asks one member, which asks the others. They refuse if one is missing, has data, or belongs to another set. */
async function initiate(): Promise<void> {
  try {
    await ask(alone, { replSetInitiate: { _id: name, members } });
    console.log(`initiated the replica set ${name}`);
  } catch (error) {
    // Once there are users, a client that is not authenticated may not even ask.
    if (!isCode(error, ALREADY_INITIALIZED, ...(admin ? [UNAUTHORIZED] : []))) throw error;
  }
}

async function makeAdmin(): Promise<void> {
  const roles = ["userAdminAnyDatabase", "clusterManager"];
  try {
    await ask(alone, { createUser: admin?.username, pwd: admin?.password, roles });
    console.log(`made the user ${admin?.username}`);
  } catch (error) {
    if (isCode(error, UNAUTHORIZED, USER_EXISTS)) return;
    // After an election another server may be the primary, where no user can be made from here. Perhaps the user exists
    // already.
    await ask(uri, { ping: 1 }).catch(() => Promise.reject(error));
  }
}

/** From now on each member may become the primary. */
async function letAllBePrimary(): Promise<void> {
  const { config } = await ask(uri, { replSetGetConfig: 1 });
  if (config.members.every(({ priority }: { priority: number }) => priority > 0)) return;
  const equal = config.members.map((member: object) => ({ ...member, priority: 1 }));
  await ask(uri, { replSetReconfig: { ...config, version: config.version + 1, members: equal } });
}

async function makeUser(path: string): Promise<void> {
  const own = readFileSync(path, "utf8").trim();
  const { credentials } = new MongoClient(own).options;
  const { username = "", password: pwd } = credentials ?? {};
  const user = { pwd, roles: [{ role: "readWrite", db: databaseName(own, username) }] };
  try {
    await ask(uri, { createUser: username, ...user });
    console.log(`made the user ${username}`);
  } catch (error) {
    if (!isCode(error, USER_EXISTS)) throw error;
    await ask(uri, { updateUser: username, ...user });
  }
}

/** Tries once a second until it works. Each reason to wait is printed once. */
async function until(attempt: () => Promise<unknown>, what: string): Promise<void> {
  for (let said = ""; ; await sleep(1_000)) {
    try {
      await attempt();
      return;
    } catch (error) {
      if (isCode(error, AUTHENTICATION_FAILED))
        throw new Error(
          "MongoDB has another password for the user in MONGODB_URI, perhaps from data of an earlier one.",
        );
      const waiting = `waiting ${what}: ${(error as Error).message}`;
      if (waiting !== said) console.log(waiting);
      said = waiting;
    }
  }
}

await until(initiate, "to initiate the replica set");
if (admin) await until(makeAdmin, "to make the first user");
await until(() => ask(uri, { ping: 1 }), "for a primary"); // only a primary answers
if (admin) {
  await until(letAllBePrimary, "to let all members be primary");
  for (const path of process.argv.slice(2)) await until(() => makeUser(path), `to make the user of ${path}`);
}
console.log(`the replica set ${name} has a primary`);
