/** The client package against the real processes, through the gateway and to a service itself. */
import { createGrpcTransport } from "@connectrpc/connect-node";
import { createPetstore, PetstoreError } from "@petstore/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

let petstore: Petstore;
let categoryId: number;
beforeAll(async () => {
  petstore = await startPetstore();
  categoryId = (await client().categories.create({ name: "dogs" })).id;
});
afterAll(() => petstore?.stop());

const client = () => createPetstore({ baseUrl: petstore.http });
const codeOf = (error: unknown) => (error instanceof PetstoreError ? error.code : `not ours: ${error}`);

test("orders what is for sale, once", async () => {
  const { pets, orders, inventory } = client();
  const pet = await pets.create({ name: "Rex", categoryId });
  expect(pet).toEqual({ id: pet.id, name: "Rex", categoryId, status: "available", etag: expect.any(String) });
  const shipDate = "2027-01-15T08:00:00.123456789Z";
  const order = await orders.create({ petId: pet.id, shipDate });
  expect(order).toEqual({ id: order.id, petId: pet.id, quantity: 1, shipDate, complete: false, etag: order.etag });
  expect(await orders.create({ petId: pet.id }).then(() => "", codeOf)).toBe("PET_NOT_AVAILABLE");
  expect(await orders.update(order.id, { complete: true })).toMatchObject({ shipDate, complete: true });
  expect(await inventory.get(pet.id)).toMatchObject({ quantity: 0, status: "sold" });
});

test("changes what is named, if it is as it was seen, and deletes", async () => {
  const { categories } = client();
  const first = await categories.create({ name: "birds", description: "They sing." });
  const renamed = await categories.update(first.id, { name: "parrots" }, { ifMatch: first.etag });
  expect(renamed).toMatchObject({ id: first.id, name: "parrots", description: "They sing." });
  const stale = categories.update(first.id, { name: "finches" }, { ifMatch: first.etag });
  expect(await stale.then(() => "", codeOf)).toBe("ETAG_MISMATCH");
  expect(await categories.update(first.id, {})).toEqual(renamed);
  expect(await categories.update(first.id, { description: undefined })).toEqual(renamed);
  const bare = await categories.update(first.id, { description: null });
  expect(bare).toEqual({ id: first.id, name: "parrots", etag: expect.any(String) });
  await categories.replace(first.id, { ...renamed, name: "crows" });
  expect(await categories.get(first.id)).toMatchObject({ name: "crows", description: "They sing." });
  expect(await categories.replace(first.id, { name: "ravens" })).not.toHaveProperty("description");
  expect(await categories.delete(first.id, { ifMatch: "*" })).toBe(undefined);
  expect(await categories.get(first.id).then(() => "", codeOf)).toBe("CATEGORY_NOT_FOUND");
});

test("reads a list of several pages, through the gateway and from the service itself", async () => {
  const cats = await client().categories.create({ name: "cats" });
  const filter = { categoryId: cats.id, limit: 2 };
  for (let i = 0; i < 5; i++) await client().pets.create({ name: `cat ${i}`, categoryId: cats.id });
  const grpc = createPetstore({ transport: createGrpcTransport({ baseUrl: petstore.url("pet") }) });
  for (const { pets } of [client(), grpc]) {
    const names: string[] = [];
    for await (const { name } of pets.list(filter)) names.push(name);
    expect(names).toEqual(["cat 4", "cat 3", "cat 2", "cat 1", "cat 0"]);
  }
});

test("says what is wrong with which field, and who can look it up", async () => {
  const error: unknown = await client()
    .pets.create({ name: " ", categoryId: 0 })
    .catch((thrown) => thrown);
  expect(error).toMatchObject({ code: "VALIDATION_FAILED", status: 400, requestId: expect.any(String) });
  expect((error as PetstoreError).violations).toEqual([
    { field: "name", message: expect.stringContaining("blank") },
    { field: "categoryId", message: expect.stringContaining("greater than 0") },
  ]);
});

test("a create whose answer was lost is made once", async () => {
  // The service does its work, and the answer does not come back.
  let sent = 0;
  const carrier = createGrpcTransport({ baseUrl: petstore.url("category") });
  const lossy: typeof carrier = {
    ...carrier,
    async unary(...call) {
      const answer = await carrier.unary(...call);
      if (++sent === 1) throw new Error("the connection was reset");
      return answer;
    },
  };
  const category = await createPetstore({ transport: lossy }).categories.create({ name: "fish" });
  expect(sent).toBe(2);
  const found = (await Array.fromAsync(client().categories.list())).filter(({ name }) => name === "fish");
  expect(found).toEqual([category]);
});

const itself = () => createPetstore({ transport: createGrpcTransport({ baseUrl: petstore.url("category") }) });

test.each([
  ["the gateway", () => client().categories.watch({ snapshot: true })],
  ["the service itself", () => itself().categories.watch({ snapshot: true })],
  ["GET /events", () => client().watch({ types: ["category"], snapshot: true })],
])("a watch by way of %s misses nothing through kills and stops", async (way, watch) => {
  const names = Array.from({ length: 12 }, (_, i) => `${way} ${i}`);
  const ends: Record<number, ["category" | "gateway", NodeJS.Signals]> = {
    3: ["category", "SIGKILL"],
    6: ["gateway", "SIGTERM"],
    9: ["category", "SIGTERM"],
  };
  const told = new Set<string>();
  const synced = Promise.withResolvers<void>();
  const watched = (async () => {
    for await (const change of watch()) {
      if (change.type === "synced") synced.resolve();
      if (change.type === "created" && told.add(change.record.name).size === names.length) break;
    }
  })();
  await Promise.race([synced.promise, watched]);
  for (const [i, name] of names.entries()) {
    await client().categories.create({ name });
    const end = ends[i];
    if (!end) continue;
    const [which, signal] = end;
    await petstore.kill(which, signal);
    await petstore.start(which);
  }
  await watched;
  expect([...told]).toEqual(names);
});

test("one stream tells what happens to all kinds of records, and ends when it is aborted", async () => {
  const over = new AbortController();
  const told: string[] = [];
  const { pets, orders, watch } = client();
  const rex = await pets.create({ name: "Rex", categoryId });
  for await (const change of watch({ petId: rex.id, snapshot: true }, { signal: over.signal })) {
    if (change.type === "snapshot") continue;
    if (change.type === "synced") {
      await orders.create({ petId: rex.id, shipDate: "2027-01-15T08:00:00Z" });
      continue;
    }
    told.push(`${change.recordType} ${change.type}`);
    if (change.type === "present") expect(change.record).toEqual(change.recordType === "pet" ? rex : expect.anything());
    if (change.recordType === "order") expect(change.record).toEqual(await orders.get(change.record.id));
    if (told.length === 5) over.abort();
  }
  expect(told.slice(0, 2).sort()).toEqual(["inventory present", "pet present"]);
  expect(told.slice(2).sort()).toEqual(["inventory updated", "order created", "pet updated"]);
});

test("nobody is there", async () => {
  await petstore.kill("order", "SIGKILL");
  const order = client().orders.get(1, { timeout: 3_000 });
  expect(["UNAVAILABLE", "DEADLINE_EXCEEDED"]).toContain(await order.then(() => "", codeOf));
});
