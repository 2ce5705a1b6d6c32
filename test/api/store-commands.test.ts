/** What requests cost at the database: MongoDB's own profiler counts the commands of the services. */
import { MongoClient } from "mongodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ServiceName, serviceNames } from "../../processes/names.ts";
import { eventually } from "../harness/eventually.ts";
import { mongodMissing, type ReplicaSet, startReplicaSet } from "../harness/mongod.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

const timeout = 300_000;
const ALIKE = 3;
let set: ReplicaSet;
let petstore: Petstore;
let client: MongoClient;
beforeAll(async () => {
  if (mongodMissing) return;
  set = await startReplicaSet();
  petstore = await startPetstore({ mongodbUri: set.uri, replicas: 1 });
  client = new MongoClient(set.uri);
}, timeout);
afterAll(async () => {
  await client?.close();
  await petstore?.stop();
  await set?.stop();
}, timeout);

const dbOf = (service: string) => client.db(`petstore_${service}`);
/** Those of workers, which run on timers, ask for these fields; readiness reads a collection of its own. */
const OF_WORKERS = ["pending", "hasReservations", "hour", "endedOn"];

/** The id in the answer. */
async function send(method: string, path: string, body: object): Promise<number> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${petstore.http}${path}`, { method, headers, body: JSON.stringify(body) });
  const text = await response.text();
  expect(`${response.status} ${response.ok ? "" : text}`).toMatch(/^20[01] $/);
  return JSON.parse(text).id;
}

/** No entry waits for its status to be published. */
const atRest = () => eventually(() => dbOf("inventory").collection("inventory").countDocuments({ pending: true }), 0);

/** Ids were taken from the sequence of a service since it is profiled. */
const idsTaken = (service: ServiceName) =>
  eventually(async () => {
    const taken = { "command.findAndModify": "_sequences" };
    return (await dbOf(service).collection("system.profile").countDocuments(taken)) > 0;
  }, true);

/** How often the services sent each command for a request and all that follows from it: one may take ids for the next. */
async function commandsOf(request: () => Promise<unknown>, takesIdsOf?: ServiceName): Promise<Record<string, number>> {
  await atRest();
  for (const name of serviceNames) await dbOf(name).command({ profile: 2 });
  await request();
  await atRest();
  if (takesIdsOf) await idsTaken(takesIdsOf);
  const counts: Record<string, number> = {};
  for (const name of serviceNames) {
    await dbOf(name).command({ profile: 0 });
    const seen = await dbOf(name)
      .collection("system.profile")
      .find({ appName: /^petstore\// })
      .toArray();
    await dbOf(name).collection("system.profile").drop();
    for (const { ns, op, command } of seen) {
      const collection = `${ns}`.slice(`petstore_${name}.`.length);
      const isOfWorker = OF_WORKERS.some((field) => field in (command?.filter ?? {}));
      if (isOfWorker || collection === "_petstore" || collection === "formats") continue;
      const what = `${op === "command" ? Object.keys(command)[0] : op} ${collection}`;
      counts[what] = (counts[what] ?? 0) + 1;
    }
  }
  return counts;
}

/**
 * The least that one of several alike took of each command: a worker that runs at the same time adds to one of them. Each
 * is for one of the records with these ids.
 */
async function leastOf(
  ids: readonly number[],
  request: (id: number) => Promise<unknown>,
  takesIdsOf?: ServiceName,
): Promise<Record<string, number>> {
  const all: Record<string, number>[] = [];
  for (const id of ids) all.push(await commandsOf(() => request(id), takesIdsOf));
  const least = Object.keys(all[0] ?? {}).map((what) => [what, Math.min(...all.map((counts) => counts[what] ?? 0))]);
  return Object.fromEntries(least.filter(([, count]) => count !== 0));
}

test.skipIf(mongodMissing)("each request takes as few commands as it can", { timeout }, async () => {
  const categoryId = await send("POST", "/categories", { name: "dogs" });
  const petId = await send("POST", "/pets", { name: "the first of its category", categoryId });
  const pets: number[] = [];
  const orders: number[] = [];
  const alike = Array.from({ length: ALIKE }, () => 0);
  const createPet = async () => pets.push(await send("POST", "/pets", { name: "Rex", categoryId }));
  expect(await leastOf(alike, createPet, "pet")).toEqual({
    // The deletion guard is read before the pet claims its place, and after it.
    "query deletion_guards": 2,
    "findAndModify _sequences": 1,
    "insert pets": 1,
    "insert inventory": 1,
    "update pets": 1,
  });
  const order = async (petId: number) => orders.push(await send("POST", "/store/orders", { petId }));
  expect(await leastOf(pets, order, "order")).toEqual({
    // Behind the answer.
    "findAndModify _sequences": 1,
    "insert orders": 1,
    // One to reserve, and one to take the published status out of the outbox.
    "update inventory": 2,
    "update pets": 1,
  });
  const complete = (id: number) => send("PATCH", `/store/orders/${id}`, { complete: true });
  expect(await leastOf(orders, complete)).toEqual({
    "update orders": 1,
    "update inventory": 2,
    "update pets": 1,
  });
  expect(await leastOf([petId, ...pets], (id) => send("PATCH", `/pets/${id}`, { name: "Max" }))).toEqual({
    "update pets": 1,
  });
});
