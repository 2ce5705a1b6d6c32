/** A newcomer's walk through the whole petstore, with no credentials and no configuration, by every kind of client. */
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CategoryService } from "#proto/petstore/category/v1/category_service_pb.ts";
import { PetStatus } from "#proto/petstore/common/v1/pet_status_pb.ts";
import { InventoryService } from "#proto/petstore/inventory/v1/inventory_service_pb.ts";
import { OrderService } from "#proto/petstore/order/v1/order_service_pb.ts";
import { PetService } from "#proto/petstore/pet/v1/pet_service_pb.ts";
import { type Petstore, startPetstore } from "../harness/petstore.ts";

let petstore: Petstore;
beforeAll(async () => {
  petstore = await startPetstore();
});
afterAll(() => petstore?.stop());

/** A pet's status follows soon, and always in the end; how soon is no matter here. */
async function eventually<T>(read: () => Promise<T>, expected: T): Promise<void> {
  for (const limit = Date.now() + 30_000; Date.now() < limit; await sleep(20)) if ((await read()) === expected) return;
  expect(await read()).toEqual(expected);
}

test("by HTTP", async () => {
  const send = async (method: string, path: string, body?: object) => {
    const json = body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(petstore.http + path, { method, ...json });
    return { status: response.status, body: await response.json() };
  };
  const statusOf = async (id: number) => (await send("GET", `/pets/${id}`)).body.status;

  const category = await send("POST", "/categories", { name: "dog" });
  expect(category).toEqual({ status: 201, body: { id: expect.any(Number), name: "dog" } });
  const pet = await send("POST", "/pets", { name: "Rex", categoryId: category.body.id });
  expect(pet).toMatchObject({ status: 201, body: { status: "available" } });
  const petId: number = pet.body.id;
  expect(await send("GET", `/store/inventory/${petId}`)).toEqual({
    status: 200,
    body: { petId, quantity: 1, status: "available" },
  });
  const order = await send("POST", "/store/orders", { petId });
  expect(order).toMatchObject({ status: 201, body: { petId, quantity: 1, complete: false } });
  await eventually(() => statusOf(petId), "pending");
  expect((await send("GET", "/store/orders")).body).toContainEqual(order.body);
  const completed = await send("PATCH", `/store/orders/${order.body.id}`, { complete: true });
  expect(completed).toEqual({ status: 200, body: { ...order.body, complete: true } });
  await eventually(() => statusOf(petId), "sold");
  expect(await send("PUT", `/store/inventory/${petId}`, { quantity: 10 })).toEqual({
    status: 200,
    body: { petId, quantity: 10, status: "available" },
  });
  await eventually(() => statusOf(petId), "available");
});

const clients: Record<string, () => Pick<Petstore, "transport">> = {
  "gRPC, at the services": () => petstore,
  "Connect, through the gateway": () => through(petstore.endpoint),
  "a Connect web client": () => through(createConnectTransport({ baseUrl: petstore.http })),
  "a Connect web client that speaks binary": () =>
    through(createConnectTransport({ baseUrl: petstore.http, useBinaryFormat: true })),
  "a gRPC-Web client": () => through(createGrpcWebTransport({ baseUrl: petstore.http })),
};
const through = (transport: Transport) => ({ transport: () => transport });

test.each(Object.entries(clients))("by %s", async (_, open) => {
  const { transport } = open();
  const categories = createClient(CategoryService, transport(CategoryService));
  const pets = createClient(PetService, transport(PetService));
  const orders = createClient(OrderService, transport(OrderService));
  const inventory = createClient(InventoryService, transport(InventoryService));

  const { category } = await categories.createCategory({ category: { name: "dog" } });
  const { pet } = await pets.createPet({ pet: { name: "Rex", categoryId: category?.id ?? 0n } });
  expect(pet?.status).toBe(PetStatus.AVAILABLE);
  const petId = pet?.id ?? 0n;
  const statusOf = async () => (await pets.getPet({ petId })).pet?.status;

  expect((await inventory.getInventory({ petId })).item).toMatchObject({ quantity: 1, status: PetStatus.AVAILABLE });
  const { order } = await orders.createOrder({ order: { petId } });
  expect(order).toMatchObject({ petId, quantity: 1, complete: false });
  await eventually(statusOf, PetStatus.PENDING);
  expect((await orders.listOrders({})).orders).toContainEqual(order);
  const completed = await orders.updateOrder({
    orderId: order?.id ?? 0n,
    order: { complete: true },
    updateMask: { paths: ["complete"] },
  });
  expect(completed.order).toMatchObject({ complete: true, quantity: 1 });
  await eventually(statusOf, PetStatus.SOLD);
  const { item } = await inventory.updateInventory({ petId, inventory: { quantity: 10 } });
  expect(item).toMatchObject({ quantity: 10, status: PetStatus.AVAILABLE });
  await eventually(statusOf, PetStatus.AVAILABLE);
});

test("and all of it is still there after everything was killed and started again", async () => {
  const before = await Promise.all(
    ["/categories", "/pets", "/store/orders", "/store/inventory"].map(async (path) =>
      (await fetch(petstore.http + path)).text(),
    ),
  );
  const names = ["gateway", "pet", "category", "order", "inventory"] as const;
  await Promise.all(names.map((name) => petstore.kill(name, "SIGKILL")));
  await Promise.all(names.map((name) => petstore.start(name)));
  const after = await Promise.all(
    ["/categories", "/pets", "/store/orders", "/store/inventory"].map(async (path) =>
      (await fetch(petstore.http + path)).text(),
    ),
  );
  expect(after).toEqual(before);
});
