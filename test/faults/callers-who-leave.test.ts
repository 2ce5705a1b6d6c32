/** Callers who leave while MongoDB does not come to an end with their reads: the reads end, too. */
import type { Document } from "mongodb";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { ask, mongodMissing, type ReplicaSet, startReplicaSet } from "../harness/mongod.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

describe.skipIf(mongodMissing)("a read ends at MongoDB when its caller leaves", { timeout: 60_000 }, () => {
  const stack = new AsyncDisposableStack();
  let set: ReplicaSet;
  let petstore: Petstore;
  beforeAll(async () => {
    set = stack.use(await startReplicaSet({ arguments: ["--setParameter", "enableTestCommands=1"] }));
    petstore = stack.use(await startPetstore({ mongodbUri: set.uri }));
    await hold("alwaysOn");
  }, 120_000);
  afterAll(() => stack.disposeAsync(), 60_000);

  const server = (command: object) => ask(set.members[0]?.host, command);
  const hold = (mode: string) =>
    server({
      configureFailPoint: "waitInFindBeforeMakingBatch",
      mode,
      data: { nss: "petstore_pet.pets", shouldCheckForInterrupt: true },
    });

  /** Occurs in the filter of what a test reads, and of nothing else. */
  let id = 4_711_000;
  beforeEach(() => {
    id++;
  });
  const isRunning = async () => {
    const { inprog } = await server({ currentOp: true, ns: "petstore_pet.pets" });
    return inprog.some(({ command }: Document) => JSON.stringify(command.filter ?? {}).includes(`${id}`));
  };
  const get = (path: () => string) => (signal: AbortSignal) => fetch(petstore.http + path(), { signal });

  test.each<[string, (signal: AbortSignal) => Promise<unknown>]>([
    ["one record by HTTP", get(() => `/pets/${id}`)],
    ["a list by id", get(() => `/pets?id=${id}`)],
    ["a list", get(() => `/pets?categoryId=${id}`)],
    ["an RPC at the gateway", (signal) => petstore.connect(PetService).getPet({ petId: BigInt(id) }, { signal })],
    ["gRPC at the service", (signal) => petstore.client(PetService).getPet({ petId: BigInt(id) }, { signal })],
  ])("%s", async (_, read) => {
    const caller = new AbortController();
    const answer = read(caller.signal).then(
      () => "answered",
      () => "left",
    );
    await expect.poll(isRunning, { timeout: 10_000 }).toBe(true);
    caller.abort();
    // Long before the time of the request is over.
    await expect.poll(isRunning, { timeout: 5_000 }).toBe(false);
    expect(await answer).toBe("left");
  });
});
