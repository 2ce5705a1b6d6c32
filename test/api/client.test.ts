/** The client package against the real processes, through the gateway and to a service itself. */
import { createGrpcTransport } from "@connectrpc/connect-node";
import { createPetstore, isPetstoreError, PetStatus } from "@petstore/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

let petstore: Petstore;
let categoryId: bigint;
beforeAll(async () => {
  petstore = await startPetstore();
  const { category } = await client().categories.createCategory({ category: { name: "dogs" } });
  categoryId = category?.id ?? expect.unreachable("no category");
});
afterAll(() => petstore?.stop());

const client = () => createPetstore({ baseUrl: petstore.http });
const reasonOf = (error: unknown) => (isPetstoreError(error) ? error.reason : `not ours: ${error}`);

test("orders what is for sale, once", async () => {
  const { pets, orders, inventory } = client();
  const { pet } = await pets.createPet({ pet: { name: "Rex", categoryId } });
  const { order } = await orders.createOrder({ order: { petId: pet?.id ?? 0n } });
  expect(order).toMatchObject({ petId: pet?.id, quantity: 1, complete: false });
  const again = orders.createOrder({ order: { petId: pet?.id ?? 0n } });
  expect(await again.then(() => "", reasonOf)).toBe("PET_NOT_AVAILABLE");
  expect((await orders.updateOrder({ orderId: order?.id ?? 0n, order: { complete: true } })).order?.complete).toBe(
    true,
  );
  expect((await inventory.getInventory({ petId: pet?.id ?? 0n })).item).toMatchObject({
    quantity: 0,
    status: PetStatus.SOLD,
  });
});

test("reads a list of several pages, through the gateway and from the service itself", async () => {
  const { category } = await client().categories.createCategory({ category: { name: "cats" } });
  const filter = { categoryId: category?.id ?? 0n, limit: 2 };
  for (let i = 0; i < 5; i++)
    await client().pets.createPet({ pet: { name: `cat ${i}`, categoryId: filter.categoryId } });
  const grpc = createPetstore({ transport: createGrpcTransport({ baseUrl: petstore.url("pet") }) });
  for (const { pets } of [client(), grpc]) {
    const names: string[] = [];
    for await (const { name } of pets.all(filter)) names.push(name);
    expect(names).toEqual(["cat 4", "cat 3", "cat 2", "cat 1", "cat 0"]);
  }
});

test("says what is wrong with which field, and who can look it up", async () => {
  const error: unknown = await client()
    .pets.createPet({ pet: { name: " ", categoryId } })
    .catch((thrown) => thrown);
  if (!isPetstoreError(error) || error.reason !== "VALIDATION_FAILED") return expect.unreachable(`${error}`);
  expect(error.violations).toEqual([{ field: "pet.name", message: expect.stringContaining("blank") }]);
  expect(error.requestId).toEqual(expect.any(String));
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
  const { category } = await createPetstore({ transport: lossy }).categories.createCategory({
    category: { name: "fish" },
  });
  expect(sent).toBe(2);
  const found: bigint[] = [];
  for await (const { id, name } of client().categories.all()) if (name === "fish") found.push(id);
  expect(found).toEqual([category?.id]);
});

test.each<[string, () => ReturnType<typeof createPetstore>]>([
  ["the gateway", client],
  [
    "the service itself",
    () => createPetstore({ transport: createGrpcTransport({ baseUrl: petstore.url("category") }) }),
  ],
])("a watch by way of %s misses nothing through kills and stops", async (way, watcher) => {
  const names = Array.from({ length: 12 }, (_, i) => `${way} ${i}`);
  const ends: Record<number, ["category" | "gateway", NodeJS.Signals]> = {
    3: ["category", "SIGKILL"],
    6: ["gateway", "SIGTERM"],
    9: ["category", "SIGTERM"],
  };
  const told = new Set<string>();
  const synced = Promise.withResolvers<void>();
  const watched = (async () => {
    for await (const change of watcher().categories.watch({ snapshot: true })) {
      if (change.type === "synced") synced.resolve();
      if (change.type === "created" && told.add(change.record.name).size === names.length) break;
    }
  })();
  await Promise.race([synced.promise, watched]);
  for (const [i, name] of names.entries()) {
    await client().categories.createCategory({ category: { name } });
    const end = ends[i];
    if (!end) continue;
    const [which, signal] = end;
    await petstore.kill(which, signal);
    await petstore.start(which);
  }
  await watched;
  expect([...told]).toEqual(names);
});

test("nobody is there", async () => {
  await petstore.kill("order", "SIGKILL");
  const order = client().orders.getOrder({ orderId: 1n }, { timeoutMs: 3_000 });
  expect(["UNAVAILABLE", "DEADLINE_EXCEEDED"]).toContain(await order.then(() => "", reasonOf));
});
