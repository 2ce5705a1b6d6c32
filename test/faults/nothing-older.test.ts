/**
 * Two processes of each service on MongoDB: no read through a gateway is older than what it has told, and nobody outside
 * hears of how it knows. `mongo.seen.process.test.ts` of the store takes the primary away.
 */
import { createClient } from "@connectrpc/connect";
import type { Document } from "mongodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { withDatabase } from "../../packages/store/fixtures/mongo.ts";
import { mongodMissing, type ReplicaSet, startReplicaSet } from "../harness/mongod.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

const JSON_BODY = { "content-type": "application/json" };

describe.skipIf(mongodMissing)("what a gateway has told", { timeout: 60_000 }, () => {
  const stack = new AsyncDisposableStack();
  let set: ReplicaSet;
  let petstore: Petstore;
  let base: string;
  beforeAll(async () => {
    set = stack.use(await startReplicaSet());
    petstore = stack.use(await startPetstore({ mongodbUri: set.uri, replicas: 2 }));
    base = petstore.http; // one of two gateways
  }, 120_000);
  afterAll(() => stack.disposeAsync(), 60_000);

  const post = async (path: string, body: object): Promise<{ id: number }> => {
    const response = await fetch(base + path, { method: "POST", headers: JSON_BODY, body: JSON.stringify(body) });
    expect(response.status).toBe(201);
    return (await response.json()) as { id: number };
  };

  test("is read by each replica, one record and lists alike", async () => {
    const { id: categoryId } = await post("/categories", { name: "cats" });
    const { id } = await post("/pets", { name: "Tom", categoryId });
    const profile = await withDatabase(set.uri, "petstore_pet", async (db) => {
      const { operationTime } = await db.command({ profile: 2 });
      await post("/pets", { name: "Kit", categoryId });
      for (const path of [
        `/pets/${id}`,
        `/pets/${id}`,
        `/pets?id=${id}`,
        `/pets?id=${id}`,
        "/pets?limit=7",
        "/pets?limit=6",
      ])
        expect((await fetch(base + path)).status).toBe(200);
      await db.command({ profile: 0 });
      const told = { op: "query", ns: "petstore_pet.pets", "command.filter": { $exists: true } };
      const found = await db.collection("system.profile").find(told).toArray();
      return found
        .map(({ command }) => command)
        .filter(({ filter, limit }) => filter._id === id || limit === 8 || limit === 7)
        .map(({ readConcern }: Document) => ({
          ...readConcern,
          isAfter: readConcern.afterClusterTime.greaterThan(operationTime),
        }));
    });
    expect(profile).toHaveLength(6);
    for (const one of profile) expect(one).toMatchObject({ level: "majority", isAfter: true });
  });

  test("is for the petstore's own processes to know", async () => {
    const fields: string[] = [];
    const onHeader = (headers: Headers) => void fields.push(...headers.keys());
    const rpc = createClient(PetService, petstore.endpoint);
    await post("/categories", { name: "dogs" });
    for (const path of ["/pets?limit=1", "/pets/999999"]) onHeader((await fetch(base + path)).headers);
    await rpc.listPets({ limit: 1 }, { onHeader, onTrailer: onHeader });
    await rpc.getPet({ petId: 999_999n }).catch(({ metadata }) => onHeader(metadata));
    await petstore
      .client(PetService)
      .listPets({ limit: 1 }, { headers: { "x-internal-seen": "" }, onHeader, onTrailer: onHeader });
    expect(fields.length).toBeGreaterThan(20);
    expect(fields.filter((name) => name.startsWith("x-internal"))).toEqual([]);
  });
});
